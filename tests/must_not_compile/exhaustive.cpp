// Passes of an engine's own that forget a field. nvcc shows the member's number in its struct.
//
// case 1: a field without a handler
// expect-gcc: fields_without_a_handler<.*"logits"
// expect-clang: fields_without_a_handler<.*value\.logits}
// expect-nvcc: fields_without_a_handler<3UL>
// case 2: several fields without a handler, one of them in a group: the message lists all
// expect-gcc: fields_without_a_handler<.*"states".*"keys".*"logits"
// expect-clang: fields_without_a_handler<.*value\.states}.*value\.keys}.*value\.logits}
// expect-nvcc: fields_without_a_handler<0UL, 1UL, 3UL>
// case 3: no handler at all
// expect-gcc: fields_without_a_handler<.*"states".*"queries".*"keys".*"logits"
// expect-clang: fields_without_a_handler<.*value\.states}.*value\.queries}.*value\.keys}.*value\.logits}
// expect-nvcc: fields_without_a_handler<0UL, 0UL, 1UL, 3UL>
// case 4: two handlers of one field
// expect-gcc: fields_with_two_handlers<.*"keys"
// expect-clang: fields_with_two_handlers<.*value\.keys}
// expect-nvcc: fields_with_two_handlers<1UL>
// case 5: a handler of a whole group
// expect: stowage: the member pointer leads to no buffer; give the path into the group as well
// case 6: a handler of a member that is not owned does not count for the field behind it
// expect: stowage: the member pointer leads to no buffer; give the path into the group as well
// case 7: a handler of another list's field
// expect: stowage: the member pointer is of another struct

#include <stowage/exhaustive.hpp>
#include <stowage/stowage.hpp>

using namespace stowage;

struct params {
  tokens batch{};
};
inline constexpr dim<&params::batch> M{};

struct attention {
  buffer<float, shape<M>, zero::rows> queries;
  buffer<float, shape<M>, zero::rows> keys;
};
struct fields {
  buffer<float, shape<M>, zero::rows> states;
  attention heads;
  not_owned<int> number;
  buffer<float, shape<M>, zero::full> logits;
};
struct other_fields {
  buffer<float, shape<M>, zero::full> logits;
};

void visit(fields& list) {
  const auto nothing = [](const auto&) {};
  visit_exhaustive(list
#if STOWAGE_MUST_NOT_COMPILE == 3
#elif STOWAGE_MUST_NOT_COMPILE == 2
                   ,
                   on<&fields::heads, &attention::queries>(nothing)
#else
                   ,
                   on<&fields::states>(nothing),
#if STOWAGE_MUST_NOT_COMPILE == 5
                   on<&fields::heads>(nothing),
#else
                   on<&fields::heads, &attention::queries>(nothing),
#endif
                   on<&fields::heads, &attention::keys>(nothing)
#if STOWAGE_MUST_NOT_COMPILE == 4
                       ,
                   on<&fields::heads, &attention::keys>(nothing)
#endif
#if STOWAGE_MUST_NOT_COMPILE == 6
                       ,
                   on<&fields::number>(nothing)
#elif STOWAGE_MUST_NOT_COMPILE == 7
                       ,
                   on<&other_fields::logits>(nothing)
#elif STOWAGE_MUST_NOT_COMPILE == 1
#else
                       ,
                   on<&fields::logits>(nothing)
#endif
#endif
  );
}
