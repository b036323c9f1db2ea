#pragma once

namespace stowage::inline v0_1 {

/// Puts the field on a list of the user's, named by a type, for passes such as
/// `zero_tagged<prefill_essentials>`. A field can carry any number of tags.
template <class Tag> struct tag {
  using stowage_trait = void;
  using tag_type = Tag;
};

} // namespace stowage::inline v0_1
