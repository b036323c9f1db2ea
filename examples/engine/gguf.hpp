// Reads a GGUF file, version 3: metadata by key, tensors by name. The file is mapped, and tensors point into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace engine {

/// 32 numbers of 4 bits: value = scale * number + minimum. Number j is the low half of byte j, number 16 + j the
/// high half. Scale and minimum are binary16.
struct q4_1_block {
  static constexpr std::size_t elements_per_block = 32;
  std::uint16_t scale;
  std::uint16_t minimum;
  std::uint8_t pairs[16];
};
static_assert(sizeof(q4_1_block) == 20);

/// 32 numbers of 8 bits: value = scale * number.
struct q8_0_block {
  static constexpr std::size_t elements_per_block = 32;
  std::uint16_t scale;
  std::int8_t numbers[32];
};
static_assert(sizeof(q8_0_block) == 34);

/// Those that this engine computes with, by their numbers in the file.
enum class tensor_type : std::uint32_t { f32 = 0, q4_1 = 3, q8_0 = 8 };

/// A matrix of the file, row after row, or a vector, which has one row.
struct matrix {
  tensor_type type = tensor_type::f32;
  std::size_t rows = 0, columns = 0;
  const std::byte* data = nullptr;

  /// Bytes of one row.
  [[nodiscard]] std::size_t row_bytes() const;
  template <class Element> [[nodiscard]] const Element* row(std::size_t index) const {
    return reinterpret_cast<const Element*>(data + index * row_bytes());
  }
};

class gguf_file {
public:
  /// Throws std::runtime_error that names the file and what is wrong with it.
  explicit gguf_file(const std::string& path);
  ~gguf_file();
  gguf_file(const gguf_file&) = delete;
  gguf_file& operator=(const gguf_file&) = delete;

  /// Metadata. Throw std::runtime_error where the key is missing or of another kind.
  [[nodiscard]] std::size_t integer(std::string_view key) const;
  [[nodiscard]] float real(std::string_view key) const;
  [[nodiscard]] const std::vector<std::string_view>& texts(std::string_view key) const;
  [[nodiscard]] const std::vector<std::int64_t>& integers(std::string_view key) const;
  [[nodiscard]] std::string_view text(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return metadata_.find(key) != metadata_.end(); }

  /// A tensor of one or two dimensions. Throws where it is missing or of a type that the engine does not take.
  [[nodiscard]] matrix tensor(std::string_view name) const;

private:
  using value = std::variant<std::int64_t, double, std::string_view, std::vector<std::int64_t>,
                             std::vector<std::string_view>>;
  struct cursor;
  struct entry {
    std::uint32_t type;
    std::vector<std::size_t> extents;
    std::size_t offset;
  };

  [[noreturn]] void fail(const std::string& what) const;
  template <class Kind> const Kind& get(std::string_view key) const;
  value read_value(cursor& at, std::uint32_t type) const;

  std::string path_;
  std::span<const std::byte> bytes_;
  std::size_t data_ = 0; ///< where the tensors' data begins
  std::map<std::string_view, value> metadata_;
  std::map<std::string_view, entry> tensors_;
};

} // namespace engine
