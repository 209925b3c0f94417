// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gemm/descriptor.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::device::cuda {

const char* name(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return "none";
    case Epilogue::bias:
      return "bias";
    case Epilogue::gelu:
      return "gelu";
    case Epilogue::gelu_bias:
      return "gelu_bias";
    case Epilogue::gelu_gradient:
      return "gelu_gradient";
    case Epilogue::bias_gradient:
      return "bias_gradient";
  }
  return "?";
}

bool has_bias(Epilogue epilogue) {
  return epilogue == Epilogue::bias || epilogue == Epilogue::gelu_bias ||
         epilogue == Epilogue::bias_gradient;
}

bool can_go_without(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
    case Epilogue::bias:
      return false;
    case Epilogue::gelu:
    case Epilogue::gelu_bias:
    case Epilogue::gelu_gradient:
    case Epilogue::bias_gradient:
      return true;
  }
  return false;
}

namespace {

/// Bytes that a kernel of ours would move to do the epilogue's work after the GEMM.
double bytes_of_own_pass(const GemmDescriptor& descriptor) {
  const auto size = static_cast<double>(size_of(descriptor.in));
  const auto results = static_cast<double>(descriptor.m) * static_cast<double>(descriptor.n);
  switch (descriptor.epilogue) {
    case Epilogue::none:
    case Epilogue::bias:
      return 0;
    case Epilogue::gelu:
    case Epilogue::gelu_bias:
      return 2 * size * results;
    case Epilogue::gelu_gradient:
      return 3 * size * results;
    case Epilogue::bias_gradient:
      return size * static_cast<double>(descriptor.n) * static_cast<double>(descriptor.k);
  }
  return 0;
}

}  // namespace

bool epilogue_pays(const GemmDescriptor& descriptor, double seconds, double seconds_apart) {
  // Operations that a GPU (H200) does in the time in which it moves a byte.
  constexpr double operations_of_a_byte = 200;
  const double operations = 2.0 * static_cast<double>(descriptor.m) *
                            static_cast<double>(descriptor.n) * static_cast<double>(descriptor.k);
  const double own_pass = seconds_apart * bytes_of_own_pass(descriptor) * operations_of_a_byte /
                          std::max(operations, 1.0);
  return seconds <= seconds_apart + own_pass;
}

GemmDescriptor GemmDescriptor::alone() const {
  auto one = *this;
  if (matrices > 0) one.matrices = 1;
  one.batch_stride_a = one.batch_stride_b = one.batch_stride_c = one.batch_stride_d = 0;
  return one;
}

std::string GemmDescriptor::text() const {
  const auto batch = matrices > 0 ? base::format(" batch,{}@{}", stride_c, alignment_c) : "";
  return base::format("{}x{}x{} {}{} {},{},{} {}>{} {},{} +{} @{},{},{},{}{}", m, n, k,
                      transpose_a ? 't' : 'n', transpose_b ? 't' : 'n', stride_a, stride_b,
                      stride_d, device::name(in), device::name(out), name(epilogue), stride_aux,
                      accumulate ? 1 : 0, alignment_a, alignment_b, alignment_d, alignment_aux,
                      batch);
}

}  // namespace trireme::device::cuda
