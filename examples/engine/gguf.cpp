#include "gguf.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace engine {

namespace {

/// The numbers that the file gives kinds of metadata.
enum class kind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

} // namespace

std::size_t matrix::row_bytes() const {
  switch (type) {
    case tensor_type::q4_1: return columns / 32 * sizeof(q4_1_block);
    case tensor_type::q8_0: return columns / 32 * sizeof(q8_0_block);
    case tensor_type::f32: break;
  }
  return columns * sizeof(float);
}

/// Reads on from a place in the file, and never beyond its end.
struct gguf_file::cursor {
  const gguf_file& file;
  std::size_t position;

  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > file.bytes_.size() - position) file.fail("it ends in the middle of its header");
    position += bytes;
    return file.bytes_.subspan(position - bytes, bytes);
  }
  template <class Number> Number number() {
    Number result;
    std::memcpy(&result, take(sizeof(Number)).data(), sizeof(Number));
    return result;
  }
  std::string_view string() {
    const auto characters = take(number<std::uint64_t>());
    return {reinterpret_cast<const char*>(characters.data()), characters.size()};
  }
};

gguf_file::gguf_file(const std::string& path) : path_(path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || fstat(file, &status) != 0) {
    if (file >= 0) close(file);
    fail(std::strerror(errno));
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* mapped = size == 0 ? MAP_FAILED : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) fail("it cannot be mapped");
  bytes_ = {static_cast<const std::byte*>(mapped), size};

  try {
    cursor at{*this, 0};
    if (std::memcmp(at.take(4).data(), "GGUF", 4) != 0) fail("it does not begin with GGUF");
    if (at.number<std::uint32_t>() != 3) fail("only version 3 of the format is read");
    const auto tensors = at.number<std::uint64_t>();
    const auto keys = at.number<std::uint64_t>();
    for (std::uint64_t index = 0; index < keys; ++index) {
      const std::string_view key = at.string();
      const auto type = at.number<std::uint32_t>();
      metadata_.insert_or_assign(key, read_value(at, type));
    }
    for (std::uint64_t index = 0; index < tensors; ++index) {
      const std::string_view name = at.string();
      entry next{};
      const auto dimensions = at.number<std::uint32_t>();
      if (dimensions > 4) fail("a tensor has more than 4 dimensions");
      for (std::uint32_t axis = 0; axis < dimensions; ++axis)
        next.extents.push_back(at.number<std::uint64_t>());
      next.type = at.number<std::uint32_t>();
      next.offset = at.number<std::uint64_t>();
      tensors_.insert_or_assign(name, std::move(next));
    }
    const std::size_t alignment = has("general.alignment") ? integer("general.alignment") : 32;
    if (alignment == 0) fail("its alignment is 0");
    data_ = (at.position + alignment - 1) / alignment * alignment;
  } catch (...) {
    munmap(mapped, size);
    throw;
  }
}

gguf_file::~gguf_file() { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

void gguf_file::fail(const std::string& what) const {
  throw std::runtime_error("engine: the model file '" + path_ + "': " + what);
}

gguf_file::value gguf_file::read_value(cursor& at, std::uint32_t type) const {
  switch (static_cast<kind>(type)) {
    case kind::u8: return std::int64_t{at.number<std::uint8_t>()};
    case kind::i8: return std::int64_t{at.number<std::int8_t>()};
    case kind::u16: return std::int64_t{at.number<std::uint16_t>()};
    case kind::i16: return std::int64_t{at.number<std::int16_t>()};
    case kind::u32: return std::int64_t{at.number<std::uint32_t>()};
    case kind::i32: return std::int64_t{at.number<std::int32_t>()};
    case kind::boolean: return std::int64_t{at.number<std::uint8_t>()};
    case kind::u64: return static_cast<std::int64_t>(at.number<std::uint64_t>());
    case kind::i64: return at.number<std::int64_t>();
    case kind::f32: return double{at.number<float>()};
    case kind::f64: return at.number<double>();
    case kind::text: return at.string();
    case kind::array: break;
    default: fail("its metadata holds a value of unknown type " + std::to_string(type));
  }
  const auto element = at.number<kind>();
  const auto count = at.number<std::uint64_t>();
  if (count > bytes_.size()) fail("an array in its metadata is longer than the file");
  if (element == kind::text) {
    std::vector<std::string_view> texts;
    texts.reserve(count);
    for (std::uint64_t index = 0; index < count; ++index) texts.push_back(at.string());
    return texts;
  }
  if (element == kind::array) fail("its metadata holds an array of arrays");
  std::vector<std::int64_t> integers;
  integers.reserve(count);
  for (std::uint64_t index = 0; index < count; ++index) {
    const value each = read_value(at, static_cast<std::uint32_t>(element));
    const auto* integer = std::get_if<std::int64_t>(&each);
    integers.push_back(integer != nullptr ? *integer : 0); // arrays of reals are of no use here
  }
  return integers;
}

template <class Kind> const Kind& gguf_file::get(std::string_view key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) fail("its metadata lacks '" + std::string(key) + "'");
  const auto* held = std::get_if<Kind>(&found->second);
  if (held == nullptr) fail("'" + std::string(key) + "' in its metadata is of another type");
  return *held;
}

std::size_t gguf_file::integer(std::string_view key) const {
  const auto number = get<std::int64_t>(key);
  if (number < 0) fail("'" + std::string(key) + "' is negative");
  return static_cast<std::size_t>(number);
}
float gguf_file::real(std::string_view key) const { return static_cast<float>(get<double>(key)); }
std::string_view gguf_file::text(std::string_view key) const { return get<std::string_view>(key); }
const std::vector<std::string_view>& gguf_file::texts(std::string_view key) const {
  return get<std::vector<std::string_view>>(key);
}
const std::vector<std::int64_t>& gguf_file::integers(std::string_view key) const {
  return get<std::vector<std::int64_t>>(key);
}

matrix gguf_file::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail("it has no tensor '" + std::string(name) + "'");
  const entry& there = found->second;
  matrix result;
  result.type = static_cast<tensor_type>(there.type);
  const bool blocks = result.type == tensor_type::q4_1 || result.type == tensor_type::q8_0;
  if (!blocks && result.type != tensor_type::f32)
    fail("tensor '" + std::string(name) + "' is of type " + std::to_string(there.type) +
         ", wanted F32, Q4_1 or Q8_0");
  if (there.extents.empty() || there.extents.size() > 2)
    fail("tensor '" + std::string(name) + "' is neither a matrix nor a vector");
  result.columns = there.extents[0]; // the file counts from the innermost extent
  result.rows = there.extents.size() == 2 ? there.extents[1] : 1;
  const std::size_t space = bytes_.size() - std::min(bytes_.size(), data_);
  const bool fits = result.columns != 0 && result.columns <= space && there.offset <= space &&
                    result.rows <= (space - there.offset) / std::max<std::size_t>(result.row_bytes(), 1);
  if (!fits || (blocks && result.columns % 32 != 0))
    fail("tensor '" + std::string(name) + "' does not fit in the file");
  result.data = bytes_.data() + data_ + there.offset;
  return result;
}

} // namespace engine
