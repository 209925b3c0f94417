#include "device/cuda/matrix_product.hpp"

#include "trireme/base/format.hpp"

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

std::string MatrixProduct::text() const {
  return base::format("{}x{}x{} {}{} {},{},{} {}>{} {},{} +{} @{},{},{},{}", m, n, k,
                      transpose_a ? 't' : 'n', transpose_b ? 't' : 'n', stride_a, stride_b,
                      stride_d, device::name(in), device::name(out), name(epilogue), stride_aux,
                      accumulate ? 1 : 0, alignment_a, alignment_b, alignment_d, alignment_aux);
}

}  // namespace trireme::device::cuda
