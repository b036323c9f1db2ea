// Faults that public inference engines had with the sizes, starts and clearing of their buffers, one case a class. The
// right value is worked out in each case. References name the repository and the number of the issue or pull request;
// only facts are taken from there.

#include "memory.hpp"
#include "paper_backend.hpp"

#include <stowage/arena.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/carve.hpp>
#include <stowage/condition.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::make_plan;
using stowage::operation;
using stowage::pad;
using stowage::part;
using stowage::recording_backend;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t width = 0;
  bool lever = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::width> K{"K"};
inline constexpr stowage::dim<&params::lever> lever{};

constexpr params with(std::size_t batch, std::size_t width, bool on = false) {
  return params{tokens{batch}, width, on};
}

constexpr std::size_t largest_int = 2147483647; // of 32 bits

// Scales of a block format, stored in tiles of 128 rows and 4 columns.

struct scale_table {
  buffer<stowage::fp8_e4m3, shape<pad<128>(M), pad<4>(cdiv(K, 16))>, zero::never> scales;
};

// vllm-project/vllm#55456: sized for the tokens alone, written in whole tiles.
TEST_CASE("public faults: the scale table of one token takes whole tiles") {
  constexpr auto plan = make_plan<scale_table>(with(1, 2880));
  // 2880 / 16 = 180 columns, a multiple of 4; 1 row takes a tile of 128.
  static_assert(plan.bytes<&scale_table::scales>() == 23040);
  CHECK(plan.bytes("scales") == 128 * 180);
  CHECK(plan.bytes("scales") != 180);
  const stowage::arena arena(plan, stowage::host_backend{});
  CHECK(arena->scales.fits(128, 180)); // the tile that the kernel writes
  CHECK_FALSE(arena->scales.fits(129, 180));
  // 2881 columns of values have 181 scales, which take 184.
  CHECK(make_plan<scale_table>(with(129, 2881)).bytes("scales") == 256 * 184);
}

struct pitched_scales {
  buffer<std::uint8_t, shape<pad<32>(M), pad<8>(cdiv(K, 32))>, zero::never> scales;
};

// ROCm/aiter#2900: written with rows of ceil(K / 32), read with rows padded to 8.
TEST_CASE("public faults: writer and reader of scales use one row pitch") {
  const stowage::arena arena(make_plan<pitched_scales>(with(33, 2880)), stowage::host_backend{});
  // 2880 / 32 = 90 scales a row, padded to 96; 33 rows are padded to 64.
  CHECK(arena->scales.row_elements() == 96);
  CHECK(arena->scales.bytes() == 64 * 96);
  CHECK(arena->scales.rows(32, 33).data() - arena->scales.data() == 32 * 96);
  CHECK(arena->scales.rows(32, 33).data() - arena->scales.data() != 32 * 90);
}

struct row_scales {
  buffer<float, shape<cdiv(K, 16)>, zero::never> one_row;
  buffer<float, shape<cdiv(stowage::c<576>, stowage::c<128>), cdiv(stowage::c<2048>, stowage::c<128>)>,
         zero::never>
      blocks;
  buffer<float, shape<cdiv(stowage::c<4544>, stowage::c<128>)>, zero::never> rows_of_blocks;
};

// vllm-project/compressed-tensors#547: weights that are no multiple of their block.
TEST_CASE("public faults: a last partial group has a scale too") {
  constexpr auto plan = make_plan<row_scales>(with(1, 514));
  // 514 / 16 = 32.125
  CHECK(plan.bytes("one_row") == 33 * 4);
  // 576 x 2048 in blocks of 128 x 128: 4.5 x 16
  CHECK(plan.bytes("blocks") == 5 * 16 * 4);
  // 4544 / 128 = 35.5
  CHECK(plan.bytes("rows_of_blocks") == 36 * 4);
}

// Products beyond 32 and 64 bits.

struct attention_scores {
  buffer<bf16, shape<12, 16, 12, K, K>, zero::never> scores;
};

// NVIDIA/FasterTransformer#524 (32 * 20 * 2000 * 2000), xlite-dev/ffpa-attn#299 (the same 2,415,919,104 elements).
TEST_CASE(
    "public faults: attention scores beyond 2^31 elements are exact, and beyond 64 bits refused by name") {
  constexpr auto plan = make_plan<attention_scores>(with(1, 1024));
  // 12 layers * batch 16 * 12 heads = 2304; 1024 * 1024 = 1048576.
  constexpr std::size_t elements = 2415919104;
  static_assert(elements == std::size_t{2304} * 1048576);
  static_assert(elements > largest_int);
  static_assert(plan.bytes<&attention_scores::scores>() == 4831838208);
  // What 32-bit arithmetic made of it.
  CHECK(static_cast<std::int32_t>(static_cast<std::uint32_t>(elements)) == -1879048192);
  const stowage::arena arena(plan, test::paper_backend{});
  CHECK(arena->scores.size() == elements);

  // 2304 * 2^32 * 2^32
  CHECK_THROWS_WITH_AS(
      static_cast<void>(make_plan<attention_scores>(with(1, std::size_t{1} << 32))),
      "stowage: field 'scores': 9895604649984 * 4294967296 does not fit in 64 bits, in bf16 [12, 16, "
      "12, K, K]; check the values in the params struct",
      stowage::size_error);
}

struct softmax_scores {
  buffer<float, shape<32, 20, 2000, 2000>, zero::never> scores;
};
struct logits {
  buffer<float, shape<M, K>, zero::rows> values;
};

// ikawrakow/ik_llama.cpp#2150, ggml-org/llama.cpp#23623, vllm-project/vllm#46560, #48398, #53390: a number of rows times
// the length of a row, in int.
TEST_CASE("public faults: rows times row length is exact where int wraps, as size and as address") {
  CHECK(make_plan<softmax_scores>(with(1, 1)).bytes("scores") == std::size_t{2560000000} * 4);
  // The logits of a context of 16384 tokens, padded vocabulary 131076: 2147549184 elements.
  CHECK(make_plan<logits>(with(16384, 131076)).bytes("values") == std::size_t{2147549184} * 4);
  static_assert(std::size_t{2147549184} > largest_int);
  // 8 ranks * 16384 tokens * 10 experts, 4096 wide: 1310720 * 4096.
  CHECK(make_plan<logits>(with(1310720, 4096)).bytes("values") == std::size_t{5368709120} * 4);
  // 65536 tokens of 2 * 17408.
  CHECK(make_plan<logits>(with(65536, 34816)).bytes("values") == std::size_t{2281701376} * 4);

  // 963 requests of 16 tokens are 15408 rows of 151936; the last row begins at element 15407 * 151936.
  const stowage::arena arena(make_plan<logits>(with(15408, 151936)), test::paper_backend{});
  CHECK(arena->values.size() == 2341029888);
  CHECK(reinterpret_cast<std::uintptr_t>(arena->values.rows(15407, 15408).data()) -
            reinterpret_cast<std::uintptr_t>(arena->values.data()) ==
        std::size_t{2340877952} * 4);
}

/// 32 weights of 4 bits with a scale of 16 bits: 18 bytes.
struct q4_block {
  static constexpr std::size_t elements_per_block = 32;
  std::uint16_t scale;
  std::uint8_t pairs[16];
};
static_assert(sizeof(q4_block) == 18);
struct quantized {
  buffer<q4_block, shape<K>, zero::never> weights;
};

// ggml-org/llama.cpp#27200: elements * 18 wrapped before the division by 32 and left 2 bytes.
TEST_CASE("public faults: bytes of a block format are blocks times bytes, without a product that wraps") {
  constexpr std::size_t elements = 5124095576030431008;
  // elements * 18 = 5 * 2^64 + 64, and 64 / 32 = 2.
  static_assert(elements * 18 / 32 == 2);
  static_assert(elements / 32 == 160127986750950969);
  CHECK(make_plan<quantized>(with(1, elements)).bytes("weights") == 2882303761517117442);
  // One element of the next block is a whole block.
  CHECK(make_plan<quantized>(with(1, 33)).bytes("weights") == 36);
}

struct parameters {
  buffer<bf16, shape<K>, zero::never> first;
  buffer<bf16, shape<K>, zero::never> second;
};

// karpathy/llm.c#700: the sum of all parameters' bytes in int.
TEST_CASE("public faults: the total of many buffers is exact, and refused where it has no value") {
  const auto plan = make_plan<parameters>(with(1, 3650000000));
  CHECK(plan.total_bytes() == 14600000000);
  // Each fits: 2^63 - 2 bytes at 0; the second begins behind it and ends beyond 2^64.
  CHECK_THROWS_AS(static_cast<void>(make_plan<parameters>(with(1, (std::size_t{1} << 63) - 1))),
                  stowage::size_error);
  const std::size_t half = (std::size_t{1} << 62) + 64; // * 2 bytes, twice: 2^64 + 256
  std::string message;
  try {
    static_cast<void>(make_plan<parameters>(with(1, half)));
  } catch (const stowage::size_error& error) {
    message = error.what();
  }
  CHECK(message.find("stowage: field 'second': ") == 0);
  CHECK(message.find("does not fit in 64 bits") != std::string::npos);
}

// Elements and bytes.

struct seven {
  buffer<std::int32_t, shape<7>, zero::full, stowage::align<4>> info;
  buffer<std::uint8_t, shape<32>, zero::never, stowage::align<4>> behind;
};

// microsoft/onnxruntime#9840: cudaMemsetAsync(info, 0, count) for count ints.
TEST_CASE("public faults: seven ints are 28 bytes, and all 28 are cleared") {
  constexpr auto plan = make_plan<seven>(with(1, 1));
  static_assert(plan.bytes<&seven::info>() == 28);
  stowage::arena arena(plan, stowage::host_backend{});
  test::poison_bytes(arena->info.data(), 28);
  test::poison_bytes(arena->behind.data(), 32);
  arena.zero_all();
  CHECK(test::first_difference(arena->info.data(), 28, {{0, 28}}) == 28);
  CHECK(test::first_difference(arena->behind.data(), 32, {}) == 32);
}

struct packed {
  buffer<stowage::i4, shape<K>, zero::never> values;
  buffer<stowage::fp4_e2m1, shape<3, K>, zero::never> matrix;
};

// tile-ai/tilelang#2073, tile-ai/tilelang-ascend#1731: 17 values of 4 bits in 17 / 2 = 8 bytes.
TEST_CASE("public faults: an odd number of packed 4-bit values takes the half byte too") {
  CHECK(make_plan<packed>(with(1, 7)).bytes("values") == 4);
  CHECK(make_plan<packed>(with(1, 17)).bytes("values") == 9);
  CHECK(make_plan<packed>(with(1, 1)).bytes("values") == 1);
  CHECK(make_plan<packed>(with(1, 0)).bytes("values") == 0);
  // Packed through: 3 * 17 = 51 values.
  CHECK(make_plan<packed>(with(1, 17)).bytes("matrix") == 26);
}

struct blocked_cache {
  buffer<bf16, shape<cdiv(K, 16), 16, 64>, zero::never> keys;
};

// vllm-project/vllm-ascend#12502: 24 tokens in 24 / 16 = 1 block.
TEST_CASE("public faults: the last tokens of a sequence have a cache block of their own") {
  CHECK(make_plan<blocked_cache>(with(1, 24)).bytes("keys") == 2 * 16 * 64 * 2);
  CHECK(make_plan<blocked_cache>(with(1, 16)).bytes("keys") == 1 * 16 * 64 * 2);
  CHECK(make_plan<blocked_cache>(with(1, 1)).bytes("keys") == 1 * 16 * 64 * 2);
}

// Starts.

struct beside_nothing {
  buffer<std::uint8_t, shape<K>, zero::never> nothing;
  buffer<std::uint8_t, shape<64>, zero::never> something;
  buffer<std::uint8_t, shape<K>, zero::never> nothing_again;
};

TEST_CASE("public faults: a buffer of 0 bytes shares no address with its neighbours") {
  for (const stowage::placement where : {stowage::placement::slab, stowage::placement::separate}) {
    recording_backend<> backend;
    const stowage::arena arena(make_plan<beside_nothing>(with(1, 0)), backend,
                               stowage::arena_options<stowage::host_stream>{where, {}});
    CHECK(arena->nothing.data() == nullptr);
    CHECK(arena->nothing_again.data() == nullptr);
    CHECK(arena->something.data() != nullptr);
    CHECK(backend.count(operation::allocate) == 1); // none of 0 bytes
  }
}

struct two_stages {
  part<std::uint8_t, shape<K>, stowage::align<16>> scatter;
  part<std::uint8_t, shape<K>, stowage::align<16>> gather;
};
struct two_stage_buffer {
  buffer<stowage::regions<two_stages>, zero::never> stages;
};

// flashinfer-ai/flashinfer#4473: 536870224 bytes, a multiple of 16, split in the middle; the half is none.
TEST_CASE("public faults: a buffer split in two keeps both halves aligned") {
  constexpr std::size_t half = 268435112;
  static_assert(2 * half == 536870224 && 536870224 % 16 == 0 && half % 16 == 8);
  const stowage::arena arena(make_plan<two_stage_buffer>(with(1, half)), test::paper_backend{});
  CHECK(reinterpret_cast<std::uintptr_t>(arena->stages->scatter.data()) % 16 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(arena->stages->gather.data()) % 16 == 0);
  CHECK(arena->stages->gather.data() - arena->stages->scatter.data() == 268435120);
  CHECK(arena->stages.bytes() == 268435120 + half);
}

struct odd_first {
  part<std::uint8_t, shape<3>> flags;
  part<float, shape<5>> sums;
  part<std::uint8_t, shape<1>> last_flag;
  part<double, shape<2>> totals;
};
struct odd_first_buffer {
  buffer<stowage::regions<odd_first>, zero::never> parts;
  buffer<std::uint8_t, shape<1>, zero::never> odd;
  buffer<double, shape<1>, zero::never> behind;
};

TEST_CASE("public faults: an odd first region leaves the second one aligned") {
  const stowage::arena arena(make_plan<odd_first_buffer>(with(1, 1)), stowage::host_backend{});
  const auto* const start = arena->parts.data();
  CHECK(reinterpret_cast<const std::byte*>(arena->parts->sums.data()) - start == 4); // 3 rounded up to 4
  CHECK(reinterpret_cast<const std::byte*>(arena->parts->last_flag.data()) - start == 24); // 4 + 20
  CHECK(reinterpret_cast<const std::byte*>(arena->parts->totals.data()) - start == 32); // 25 rounded up to 8
  CHECK(arena->parts.bytes() == 48);
  CHECK(reinterpret_cast<std::uintptr_t>(arena->behind.data()) % 256 == 0);
}

struct split_workspace {
  part<float, shape<32, M, 128>, stowage::align<16>> values;
  part<float, shape<32, M>, stowage::align<16>> sums;
};
struct workspace {
  buffer<std::uint8_t, shape<67108864>, zero::never> fixed;
};

// pie-project/pie#414, vllm-project/vllm#40023: a workspace of a fixed size, given out piece by piece; the first piece
// took all of it.
TEST_CASE("public faults: a workspace holds all of its pieces, or is refused before the first kernel") {
  // 32 heads * 4096 rows * 128 floats are 64 MiB to the byte; the sums take 32 * 4096 floats more.
  constexpr std::size_t values = 67108864;
  static_assert(std::size_t{32} * 4096 * 128 * 4 == values);
  CHECK(stowage::layout_of<split_workspace>(with(4096, 1)).bytes() == values + 524288);
  const stowage::arena arena(make_plan<workspace>(with(1, 1)), test::paper_backend{});
  CHECK_FALSE(stowage::carving_fits<split_workspace>(arena->fixed, with(4096, 1)));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(stowage::carve<split_workspace>(arena->fixed, with(4096, 1))),
      "stowage: field 'fixed': 67633152 bytes wanted by the carving, 67108864 are there; plan the "
      "field for larger params",
      stowage::bounds_error);
  // 4063 rows take 4063 * 32 * 129 * 4 = 67088256 bytes.
  CHECK(stowage::carving_fits<split_workspace>(arena->fixed, with(4063, 1)));
}

// Clearing.

struct projection {
  buffer<bf16, shape<M, 7168>, zero::rows> output;
};

TEST_CASE("public faults: clearing the rows of four tokens touches four rows") {
  constexpr auto plan = make_plan<projection>(with(8192, 1));
  recording_backend<stowage::host_backend> backend;
  stowage::arena arena(plan, backend);
  backend.clear();
  arena.zero_rows({}, tokens{4});
  REQUIRE(backend.calls().size() == 1);
  REQUIRE(backend.calls()[0].segments.size() == 1);
  CHECK(backend.calls()[0].segments[0].bytes == 57344); // 4 * 7168 * 2, not 8192 * 7168 * 2 = 117440512
  CHECK(plan.zero_rows_bytes(tokens{4}) == 57344);
}

// ROCm/rocm-systems#1849: clearing 0 bytes in a capture was an error of the runtime.
TEST_CASE("public faults: no tokens send nothing") {
  recording_backend<> backend;
  stowage::arena arena(make_plan<projection>(with(16, 1)), backend);
  backend.clear();
  arena.zero_rows({}, tokens{0});
  arena.zero_rows({}, tokens{5}, tokens{5});
  arena.zero_rows({}, tokens{9}, tokens{5});
  CHECK(backend.calls().empty());

  stowage::arena empty(make_plan<projection>(with(0, 1)), backend);
  empty.zero_all();
  empty.zero_rows({}, tokens{4});
  CHECK(empty.release().ok());
  CHECK(backend.calls().empty()); // nothing was allocated, cleared or given back
}

struct padded_output {
  buffer<bf16, shape<pad<16>(M), 8>, zero::rows> output;
  buffer<bf16, shape<M, 8>, zero::never> behind;
};

TEST_CASE("public faults: rows that a kernel writes because it pads are there, and are cleared") {
  stowage::arena arena(make_plan<padded_output>(with(33, 1)), stowage::host_backend{});
  CHECK(arena->output.bytes() == 48 * 16); // 33 rows padded to 48
  CHECK(arena->output.fits(48, 8));
  CHECK_FALSE(arena->behind.fits(48, 8)); // an engine asks before it picks the kernel
  test::poison_bytes(arena->output.data(), 48 * 16);
  arena.zero_rows({}, tokens{17});
  CHECK(test::first_difference(arena->output.data(), 48 * 16, {{0, 32 * 16}}) == 48 * 16);
}

// Conditions and levers.

struct optional_scratch {
  buffer<bf16, shape<M, 8>, zero::rows> states;
  buffer<float, shape<M, 8>, zero::rows, stowage::when<lever>> scratch;
};

TEST_CASE("public faults: whether a buffer is there is asked of one predicate, at allocation and at use") {
  for (const bool on : {false, true}) {
    CAPTURE(on);
    recording_backend<> backend;
    const auto plan = make_plan<optional_scratch>(with(4, 1, on));
    stowage::arena arena(plan, backend);
    CHECK(plan.present("scratch") == on);
    CHECK(static_cast<bool>(arena->scratch) == on);
    CHECK((arena->scratch.data() != nullptr) == on);
    CHECK(arena->scratch.bytes() == (on ? 4U * 8 * 4 : 0U));
    CHECK(arena->scratch.row_count() == (on ? 4U : 0U));
    CHECK(plan.zero_rows_bytes(tokens{1}) == 16U + (on ? 32U : 0U));
    CHECK(arena.release().ok());
  }
}

TEST_CASE("public faults: a lever that is flipped between plan and allocation is refused") {
  const auto estimated = make_plan<optional_scratch>(with(4, 1, false));
  const stowage::arena arena(make_plan<optional_scratch>(with(4, 1, true)), stowage::host_backend{});
  CHECK_THROWS_WITH_AS(
      arena.require(estimated),
      "stowage: the plan is another than the arena was made from: field 'scratch' has 128 bytes at "
      "256 here, the plan wants 0 bytes at 0; make plan and arena from the same params",
      stowage::usage_error);
  CHECK_NOTHROW(arena.require(make_plan<optional_scratch>(with(4, 1, true))));
}

// kekzl/imp#1648, beehive-lab/TornadoVM#1006: a captured graph keeps the addresses of buffers that were allocated anew.
TEST_CASE("public faults: a graph captured for addresses that are gone is refused before its replay") {
  const auto plan = make_plan<projection>(with(4, 1));
  stowage::arena arena(plan, stowage::host_backend{});
  const auto captured = arena.generation();
  const auto* const address = arena->output.data();
  arena.zero_all();
  arena.zero_rows({}, tokens{3});
  CHECK_NOTHROW(arena.require_generation(captured));
  CHECK(arena->output.data() == address);                // stable as long as the generation is
  arena = stowage::arena(plan, stowage::host_backend{}); // grown, say
  CHECK_THROWS_AS(arena.require_generation(captured), stowage::usage_error);
}

} // namespace
