// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/kernels/run.hpp"
#include "device/cpu/runtime/runs.hpp"
#include "device/cpu/simd/tables.hpp"
#include "device/dropout_mask.hpp"

namespace trireme::device::cpu {

template <>
void run(Context& context, const SwigluForward& operation) {
  const auto& [gate, up, y] = operation;
  with_type(gate.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto& functions = tables_of(context.isa).activations.of(element);
    const auto* g = data_of<T>(gate);
    const auto* u = data_of<T>(up);
    auto* place = data_of<T>(y);
    for_runs<3>(context, {gate, up, y}, [&](const auto& offset, std::int64_t count) {
      functions.swiglu_forward(g + offset[0], u + offset[1], place + offset[2], count);
    });
  });
}

template <>
void run(Context& context, const SwigluBackward& operation) {
  const auto& [dy, gate, up, d_gate, d_up] = operation;
  with_type(dy.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto& functions = tables_of(context.isa).activations.of(element);
    const auto* d = data_of<T>(dy);
    const auto* g = data_of<T>(gate);
    const auto* u = data_of<T>(up);
    auto* dg = data_of<T>(d_gate);
    auto* du = data_of<T>(d_up);
    for_runs<5>(context, {dy, gate, up, d_gate, d_up}, [&](const auto& offset, std::int64_t count) {
      functions.swiglu_backward(d + offset[0], g + offset[1], u + offset[2], dg + offset[3],
                                du + offset[4], count);
    });
  });
}

template <>
void run(Context& context, const GeluForward& operation) {
  const auto& [x, y] = operation;
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto& functions = tables_of(context.isa).activations.of(element);
    const auto* from = data_of<T>(x);
    auto* to = data_of<T>(y);
    for_runs<2>(context, {x, y}, [&](const auto& offset, std::int64_t count) {
      functions.gelu_forward(from + offset[0], to + offset[1], count);
    });
  });
}

template <>
void run(Context& context, const GeluBackward& operation) {
  const auto& [dy, x, dx] = operation;
  with_type(dy.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto& functions = tables_of(context.isa).activations.of(element);
    const auto* d = data_of<T>(dy);
    const auto* from = data_of<T>(x);
    auto* to = data_of<T>(dx);
    for_runs<3>(context, {dy, x, dx}, [&](const auto& offset, std::int64_t count) {
      functions.gelu_backward(d + offset[0], from + offset[1], to + offset[2], count);
    });
  });
}

template <>
void run(Context& context, const ApplyDropout& operation) {
  const auto& [x, dropout, y] = operation;
  const DropoutMask mask(dropout);
  if (!mask.active()) {
    with_type(x.dtype(), [&](auto element) {
      using T = decltype(element);
      if (data_of<T>(x) == data_of<T>(y)) return;
      for_runs<2>(context, {x, y}, [&](const auto& offset, std::int64_t count) {
        std::copy_n(data_of<T>(x) + offset[0], count, data_of<T>(y) + offset[1]);
      });
    });
    return;
  }
  const Rows rows(x);
  const Rows y_rows(y);
  const MaskNumbers numbers{mask.rate(), mask.kept_factor(), mask.seed(), mask.stream()};
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto& functions = tables_of(context.isa).dropout.of(element);
    const auto* from = data_of<T>(x);
    auto* to = data_of<T>(y);
    parallel_for(*context.team, rows.count(), row_grain(rows.width()), [&](Range range) {
      for (auto row = range.begin; row < range.end; ++row) {
        functions.apply(numbers, static_cast<std::uint64_t>(dropout_index(dropout, row)),
                        from + rows.offset(row), to + y_rows.offset(row), rows.width());
      }
    });
  });
}

template <>
void run(Context& context, const Rotary& operation) {
  const auto& [x, cos_table, sin_table, first_position, inverse] = operation;
  const auto positions = x.dim(0) * x.dim(1);
  const auto* cosines = cos_table.f32();
  const auto* sines = sin_table.f32();
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto& functions = tables_of(context.isa).rotary.of(element);
    const auto rotate = inverse ? functions.rotate_back : functions.rotate;
    auto* data = data_of<T>(x);
    parallel_for(*context.team, positions, row_grain(x.dim(2) * x.dim(3)), [&](Range range) {
      for (auto index = range.begin; index < range.end; ++index) {
        const auto sequence = index / x.dim(1);
        const auto place = index % x.dim(1);
        const auto position = first_position + place;
        rotate({data + sequence * x.stride(0) + place * x.stride(1), x.dim(2), x.stride(2),
                cosines + position * cos_table.stride(0), sines + position * sin_table.stride(0),
                x.dim(3) / 2});
      }
    });
  });
}

}  // namespace trireme::device::cpu
