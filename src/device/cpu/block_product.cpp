#include "device/cpu/block_product.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

namespace trireme::device::cpu {
namespace {

/// More than any model's training step has; a few kilobytes of compiled code each.
constexpr std::size_t forms_kept = 1024;

const dnnl::engine& engine() {
  static const dnnl::engine one(dnnl::engine::kind::cpu, 0);
  return one;
}

dnnl::memory::data_type type_of(DType dtype) {
  TRIREME_EXPECT(dtype != DType::i32, "products are of f32 or bf16");
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// Of a [rows, columns] operand.
dnnl::memory::desc description(std::int64_t rows, std::int64_t columns, DType dtype,
                               std::int64_t stride, bool transposed) {
  using Dims = dnnl::memory::dims;
  return {Dims{rows, columns}, type_of(dtype), transposed ? Dims{1, stride} : Dims{stride, 1}};
}

dnnl::matmul::primitive_desc compile(const BlockForm& form) {
  const auto a = description(form.rows, form.inner, form.in, form.a_stride, form.a_transposed);
  const auto b = description(form.inner, form.columns, form.in, form.b_stride, form.b_transposed);
  const auto c = description(form.rows, form.columns, form.out, form.c_stride, false);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (form.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  if (!form.with_bias) return {dnnl::matmul::desc(a, b, c), attributes, engine()};
  const auto bias = description(1, form.columns, form.in, form.columns, false);
  return {dnnl::matmul::desc(a, b, bias, c), attributes, engine()};
}

[[noreturn]] void throw_failure(const BlockForm& form, const std::string& text) {
  throw base::Error(
      base::ExitCode::topology,
      base::format("oneDNN cannot multiply {} blocks [{}, {}] and [{}, {}] ({}); set "
                   "numerics.backend = reference",
                   name(form.in), form.rows, form.inner, form.inner, form.columns, text));
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

Bf16Products bf16_products_of(Isa isa) {
  static const bool native = [] {
    try {
      BlockForm form{.rows = 1, .columns = 1, .inner = 1};
      form.a_stride = form.b_stride = form.c_stride = 1;
      form.in = DType::bf16;
      compile(form);
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return native && isa != Isa::avx2 ? Bf16Products::native : Bf16Products::widened;
}

/// Memory that all products of an object use in turn.
struct BlockProducts::Workspace {
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

class BlockProducts::Prepared {
 public:
  explicit Prepared(const BlockForm& wanted) : form(wanted) {
    const auto described = compile(form);
    product_ = dnnl::matmul(described);
    scratchpad_bytes_ = described.scratchpad_desc().get_size();
    add(DNNL_ARG_SRC, described.src_desc());
    add(DNNL_ARG_WEIGHTS, described.weights_desc());
    add(DNNL_ARG_DST, described.dst_desc());
    add(DNNL_ARG_SCRATCHPAD, described.scratchpad_desc());
    if (form.with_bias) add(DNNL_ARG_BIAS, described.bias_desc());
  }

  void run(Workspace& workspace, const BlockOperands& operands) {
    set(0, const_cast<void*>(operands.a));  // oneDNN's arguments know no const
    set(1, const_cast<void*>(operands.b));
    set(2, operands.c);
    set(3, workspace.scratchpad.at_least(scratchpad_bytes_));
    if (form.with_bias) set(4, const_cast<void*>(operands.bias));
    const auto status =
        dnnl_primitive_execute(product_.get(), workspace.stream.get(),
                               static_cast<int>(arguments_.size()), arguments_.data());
    if (status != dnnl_success) throw_failure(form, dnnl_status2str(status));
  }

  /// Of what oneDNN computes: f32 throughout where products are widened.
  BlockForm form;
  /// Of the operands as the caller gives them.
  BlockForm given;

 private:
  void add(int argument, const dnnl::memory::desc& description) {
    memories_.emplace_back(description, engine(), nullptr);
    arguments_.push_back({argument, memories_.back().get()});
  }
  void set(std::size_t index, void* address) { memories_[index].set_data_handle(address); }

  dnnl::matmul product_;
  std::size_t scratchpad_bytes_ = 0;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

BlockProducts::BlockProducts(Bf16Products bf16)
    : bf16_(bf16), workspace_(std::make_unique<Workspace>()) {}
BlockProducts::BlockProducts(BlockProducts&&) noexcept = default;
BlockProducts& BlockProducts::operator=(BlockProducts&&) noexcept = default;
BlockProducts::~BlockProducts() = default;

BlockProducts::Prepared& BlockProducts::prepare(const BlockForm& form) {
  auto& place = products_[form];
  if (place) return *place;
  BlockForm computed = form;
  if (form.in == DType::bf16 && bf16_ == Bf16Products::widened) {
    computed.in = computed.out = DType::f32;
    computed.a_stride = form.a_transposed ? form.rows : form.inner;
    computed.b_stride = form.b_transposed ? form.inner : form.columns;
    if (form.out == DType::bf16) computed.c_stride = form.columns;
  }
  try {
    const SerialScope serial;
    place = std::make_unique<Prepared>(computed);
  } catch (const dnnl::error& error) {
    products_.erase(form);
    throw_failure(form, error.what());
  }
  place->given = form;
  return *place;
}

void BlockProducts::run(Prepared& product, const BlockOperands& operands) {
  const auto& form = product.given;
  if (form.in == product.form.in) {
    product.run(*workspace_, operands);
    return;
  }
  const auto room = [&](std::size_t index, std::int64_t elements) {
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
    return static_cast<float*>(workspace_->widened[index].at_least(bytes));
  };
  auto* a = room(0, form.rows * form.inner);
  auto* b = room(1, form.inner * form.columns);
  const auto lines = [](bool transposed, std::int64_t rows, std::int64_t columns) {
    return transposed ? std::pair{columns, rows} : std::pair{rows, columns};
  };
  const auto [a_rows, a_columns] = lines(form.a_transposed, form.rows, form.inner);
  const auto [b_rows, b_columns] = lines(form.b_transposed, form.inner, form.columns);
  widen(static_cast<const Bf16*>(operands.a), a_rows, a_columns, form.a_stride, a);
  widen(static_cast<const Bf16*>(operands.b), b_rows, b_columns, form.b_stride, b);
  BlockOperands wide{a, b, operands.c, nullptr};
  if (form.with_bias) {
    auto* bias = room(2, form.columns);
    widen(static_cast<const Bf16*>(operands.bias), 1, form.columns, form.columns, bias);
    wide.bias = bias;
  }
  if (form.out == DType::f32) {
    product.run(*workspace_, wide);
    return;
  }
  auto* c = room(3, form.rows * form.columns);
  wide.c = c;
  auto* out = static_cast<Bf16*>(operands.c);
  if (form.accumulate) widen(out, form.rows, form.columns, form.c_stride, c);
  product.run(*workspace_, wide);
  narrow(c, form.rows, form.columns, form.c_stride, out);
}

void BlockProducts::trim() {
  if (products_.size() > forms_kept) products_.clear();
}

std::size_t BlockProducts::workspace_bytes() const {
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
