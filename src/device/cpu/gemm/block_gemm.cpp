// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/gemm/block_gemm.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_debug.h>

#include <array>
#include <cstdlib>
#include <vector>

namespace trireme::device::cpu {
namespace {

/// Descriptors to keep: more than any model's training step has, with a few kilobytes of compiled
/// code each.
constexpr std::size_t descriptors_kept = 1024;

const dnnl::engine& engine() {
  static const dnnl::engine one(dnnl::engine::kind::cpu, 0);
  return one;
}

dnnl::memory::data_type type_of(DType dtype) {
  TRIREME_EXPECT(dtype != DType::i32, "products are of f32 or bf16");
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// Descriptor of a [rows, columns] operand.
dnnl::memory::desc description(std::int64_t rows, std::int64_t columns, DType dtype,
                               std::int64_t stride, bool transposed) {
  using Dims = dnnl::memory::dims;
  return {Dims{rows, columns}, type_of(dtype), transposed ? Dims{1, stride} : Dims{stride, 1}};
}

dnnl::matmul::primitive_desc compile(const BlockDescriptor& descriptor) {
  const auto a = description(descriptor.rows, descriptor.inner, descriptor.in, descriptor.a_stride,
                             descriptor.a_transposed);
  const auto b = description(descriptor.inner, descriptor.columns, descriptor.in,
                             descriptor.b_stride, descriptor.b_transposed);
  const auto c =
      description(descriptor.rows, descriptor.columns, descriptor.out, descriptor.c_stride, false);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (descriptor.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  if (!descriptor.with_bias) return {dnnl::matmul::desc(a, b, c), attributes, engine()};
  const auto bias = description(1, descriptor.columns, descriptor.in, descriptor.columns, false);
  return {dnnl::matmul::desc(a, b, bias, c), attributes, engine()};
}

[[noreturn]] void throw_failure(const BlockDescriptor& descriptor, const std::string& text) {
  throw base::Error(base::ExitCode::topology,
                    base::format("oneDNN cannot multiply {} blocks [{}, {}] and [{}, {}] ({}); set "
                                 "numerics.backend = reference",
                                 name(descriptor.in), descriptor.rows, descriptor.inner,
                                 descriptor.inner, descriptor.columns, text));
}

/// Rows of bf16 as they lie in memory, made f32 and contiguous.
void widen(const Bf16* from, std::int64_t rows, std::int64_t columns, std::int64_t stride,
           float* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; ++i) to[row * columns + i] = to_float(from[i]);
    from += stride;
  }
}

void narrow(const float* from, std::int64_t rows, std::int64_t columns, std::int64_t stride,
            Bf16* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; ++i) to[i] = to_bf16(from[row * columns + i]);
    to += stride;
  }
}

}  // namespace

Bf16Gemm bf16_gemm_of(Isa isa) {
  static const bool native = [] {
    try {
      BlockDescriptor descriptor{.rows = 1, .columns = 1, .inner = 1};
      descriptor.a_stride = descriptor.b_stride = descriptor.c_stride = 1;
      descriptor.in = DType::bf16;
      compile(descriptor);
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return native && isa != Isa::avx2 ? Bf16Gemm::native : Bf16Gemm::widened;
}

/// Memory that all GEMMs of an object use in turn.
struct BlockGemm::Workspace {
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };
  struct Block {
    std::unique_ptr<std::byte, Free> bytes;
    std::size_t size = 0;

    void* at_least(std::size_t wanted) {
      constexpr std::size_t page = 4096;
      if (wanted > size) {
        size = (wanted + page - 1) / page * page;
        bytes.reset(static_cast<std::byte*>(std::aligned_alloc(page, size)));
        TRIREME_ENSURE(bytes != nullptr, "no memory for the workspace of products");
      }
      return bytes.get();
    }
  };

  dnnl::stream stream{engine()};
  Block scratchpad;
  /// f32 copies of a, b, bias and c.
  std::array<Block, 4> widened;
};

class BlockGemm::Prepared {
 public:
  explicit Prepared(const BlockDescriptor& wanted) : descriptor(wanted) {
    const auto described = compile(descriptor);
    matmul_ = dnnl::matmul(described);
    scratchpad_bytes_ = described.scratchpad_desc().get_size();
    add(DNNL_ARG_SRC, described.src_desc());
    add(DNNL_ARG_WEIGHTS, described.weights_desc());
    add(DNNL_ARG_DST, described.dst_desc());
    add(DNNL_ARG_SCRATCHPAD, described.scratchpad_desc());
    if (descriptor.with_bias) add(DNNL_ARG_BIAS, described.bias_desc());
  }

  void run(Workspace& workspace, const BlockOperands& operands) {
    set(0, const_cast<void*>(operands.a));  // oneDNN's arguments are not const
    set(1, const_cast<void*>(operands.b));
    set(2, operands.c);
    set(3, workspace.scratchpad.at_least(scratchpad_bytes_));
    if (descriptor.with_bias) set(4, const_cast<void*>(operands.bias));
    const auto status =
        dnnl_primitive_execute(matmul_.get(), workspace.stream.get(),
                               static_cast<int>(arguments_.size()), arguments_.data());
    if (status != dnnl_success) throw_failure(descriptor, dnnl_status2str(status));
  }

  /// Descriptor of what oneDNN computes: f32 throughout where bf16 is widened.
  BlockDescriptor descriptor;
  /// Descriptor of the operands as the caller gives them.
  BlockDescriptor given;

 private:
  void add(int argument, const dnnl::memory::desc& description) {
    memories_.emplace_back(description, engine(), nullptr);
    arguments_.push_back({argument, memories_.back().get()});
  }
  void set(std::size_t index, void* address) { memories_[index].set_data_handle(address); }

  dnnl::matmul matmul_;
  std::size_t scratchpad_bytes_ = 0;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

BlockGemm::BlockGemm(Bf16Gemm bf16) : bf16_(bf16), workspace_(std::make_unique<Workspace>()) {}
BlockGemm::BlockGemm(BlockGemm&&) noexcept = default;
BlockGemm& BlockGemm::operator=(BlockGemm&&) noexcept = default;
BlockGemm::~BlockGemm() = default;

BlockGemm::Prepared& BlockGemm::prepare(const BlockDescriptor& descriptor) {
  auto& place = prepared_[descriptor];
  if (place) return *place;
  BlockDescriptor computed = descriptor;
  if (descriptor.in == DType::bf16 && bf16_ == Bf16Gemm::widened) {
    computed.in = computed.out = DType::f32;
    computed.a_stride = descriptor.a_transposed ? descriptor.rows : descriptor.inner;
    computed.b_stride = descriptor.b_transposed ? descriptor.inner : descriptor.columns;
    if (descriptor.out == DType::bf16) computed.c_stride = descriptor.columns;
  }
  try {
    const SerialScope serial;
    place = std::make_unique<Prepared>(computed);
  } catch (const dnnl::error& error) {
    prepared_.erase(descriptor);
    throw_failure(descriptor, error.what());
  }
  place->given = descriptor;
  return *place;
}

void BlockGemm::run(Prepared& prepared, const BlockOperands& operands) {
  const auto& descriptor = prepared.given;
  if (descriptor.in == prepared.descriptor.in) {
    prepared.run(*workspace_, operands);
    return;
  }
  const auto room = [&](std::size_t index, std::int64_t elements) {
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
    return static_cast<float*>(workspace_->widened[index].at_least(bytes));
  };
  auto* a = room(0, descriptor.rows * descriptor.inner);
  auto* b = room(1, descriptor.inner * descriptor.columns);
  const auto lines = [](bool transposed, std::int64_t rows, std::int64_t columns) {
    return transposed ? std::pair{columns, rows} : std::pair{rows, columns};
  };
  const auto [a_rows, a_columns] =
      lines(descriptor.a_transposed, descriptor.rows, descriptor.inner);
  const auto [b_rows, b_columns] =
      lines(descriptor.b_transposed, descriptor.inner, descriptor.columns);
  widen(static_cast<const Bf16*>(operands.a), a_rows, a_columns, descriptor.a_stride, a);
  widen(static_cast<const Bf16*>(operands.b), b_rows, b_columns, descriptor.b_stride, b);
  BlockOperands wide{a, b, operands.c, nullptr};
  if (descriptor.with_bias) {
    auto* bias = room(2, descriptor.columns);
    widen(static_cast<const Bf16*>(operands.bias), 1, descriptor.columns, descriptor.columns, bias);
    wide.bias = bias;
  }
  if (descriptor.out == DType::f32) {
    prepared.run(*workspace_, wide);
    return;
  }
  auto* c = room(3, descriptor.rows * descriptor.columns);
  wide.c = c;
  auto* out = static_cast<Bf16*>(operands.c);
  if (descriptor.accumulate)
    widen(out, descriptor.rows, descriptor.columns, descriptor.c_stride, c);
  prepared.run(*workspace_, wide);
  narrow(c, descriptor.rows, descriptor.columns, descriptor.c_stride, out);
}

void BlockGemm::trim() {
  if (prepared_.size() > descriptors_kept) prepared_.clear();
}

std::size_t BlockGemm::workspace_bytes() const {
  auto total = workspace_->scratchpad.size;
  for (const auto& block : workspace_->widened) total += block.size;
  return total;
}

SerialScope::SerialScope() : threads_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}
SerialScope::~SerialScope() {
  omp_set_num_threads(threads_);
}

}  // namespace trireme::device::cpu
