// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cublaslt/problem.hpp"

#include <array>

namespace trireme::testing::cublaslt {
namespace {

constexpr auto invalid = CUBLAS_STATUS_INVALID_VALUE;
constexpr auto unsupported = CUBLAS_STATUS_NOT_SUPPORTED;
constexpr auto fine = CUBLAS_STATUS_SUCCESS;

cublasStatus_t judge_enumerations(const Operation& operation) {
  if (operation.beyond != 0) return refuse(unsupported, "an attribute that the stand-in ignores");
  for (const auto transpose :
       {operation.transpose_a, operation.transpose_b, operation.transpose_c}) {
    if (transpose != CUBLAS_OP_N && transpose != CUBLAS_OP_T) {
      return refuse(invalid, "a real matrix is transposed or it is not");
    }
  }
  if (operation.transpose_c != CUBLAS_OP_N) return refuse(unsupported, "C is never transposed");
  if (operation.compute != CUBLAS_COMPUTE_32F && operation.compute != CUBLAS_COMPUTE_32F_PEDANTIC) {
    return refuse(unsupported, "sums are in fp32 or in pedantic fp32");
  }
  if (operation.scale_type != CUDA_R_32F) return refuse(unsupported, "alpha and beta are fp32");
  if (operation.pointer_mode != CUBLASLT_POINTER_MODE_HOST) {
    return refuse(unsupported, "alpha and beta lie on the host");
  }
  return operation.fast_accumulation == 0 || operation.fast_accumulation == 1
             ? fine
             : refuse(invalid, "fast accumulation is 0 or 1");
}

cublasStatus_t judge_layout(const Layout& layout, const std::string& name) {
  if (size_of(layout.type) == 0) return refuse(unsupported, name + " has a type of its own");
  if (layout.beyond != 0) return refuse(unsupported, "an attribute that the stand-in ignores");
  if (layout.order != CUBLASLT_ORDER_COL) return refuse(unsupported, name + " is not by columns");
  if (layout.rows == 0 || layout.columns == 0) return refuse(invalid, name + " is empty");
  if (layout.stride < static_cast<std::int64_t>(layout.rows)) {
    return refuse(invalid, name + "'s columns overlap: its leading dimension is " +
                               std::to_string(layout.stride) + ", its rows are " +
                               std::to_string(layout.rows));
  }
  return fine;
}

cublasStatus_t judge_batches(const Problem& problem) {
  if (problem.d.matrices < 1) return refuse(invalid, "a batch of no matrices");
  for (const auto* layout : {&problem.a, &problem.b, &problem.c}) {
    if (layout->matrices != problem.d.matrices) {
      return refuse(invalid, "the batches have different numbers of matrices");
    }
  }
  if (problem.d.matrices > 1 && problem.operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    return refuse(unsupported, "the stand-in has no batches with an epilogue");
  }
  return fine;
}

cublasStatus_t judge_shapes(const Problem& problem) {
  const auto& operation = problem.operation;
  const bool plain_a = operation.transpose_a == CUBLAS_OP_N;
  const bool plain_b = operation.transpose_b == CUBLAS_OP_N;
  const auto rows_of_a = plain_a ? problem.a.rows : problem.a.columns;
  const auto rows_of_b = plain_b ? problem.b.rows : problem.b.columns;
  const auto columns_of_b = plain_b ? problem.b.columns : problem.b.rows;
  if (rows_of_a != problem.m() || columns_of_b != problem.n() || rows_of_b != problem.k()) {
    return refuse(invalid, "the shapes of A, B and D do not fit");
  }
  return problem.c.rows == problem.m() && problem.c.columns == problem.n()
             ? fine
             : refuse(invalid, "the shapes of C and D differ");
}

/// The table of types under cublasLtMatmul, for sums in fp32.
cublasStatus_t judge_types(const Problem& problem) {
  const auto a = problem.a.type;
  const auto d = problem.d.type;
  if (problem.b.type != a) return refuse(unsupported, "A and B have two types");
  if (problem.c.type != d) return refuse(unsupported, "C and D have two types");
  const bool listed = (a == CUDA_R_32F && d == CUDA_R_32F) ||
                      (a != CUDA_R_32F && (d == CUDA_R_32F || d == CUDA_R_16BF));
  return listed ? fine : refuse(unsupported, "no such combination of types is listed");
}

/// Demands of the documents on FP8 before Blackwell, and of "Tensor Core Usage" beside it.
cublasStatus_t judge_float8(const Problem& problem, int capability) {
  const auto& operation = problem.operation;
  constexpr std::uint64_t pack = 16;
  if (!problem.float8()) {
    const bool scaled = operation.scale_a != nullptr || operation.scale_b != nullptr;
    return scaled ? refuse(invalid, "scales are for FP8") : fine;
  }
  if (capability < 89) return refuse(unsupported, "FP8 needs compute capability 8.9");
  if (operation.compute != CUBLAS_COMPUTE_32F) return refuse(unsupported, "FP8 is not pedantic");
  if (operation.transpose_a != CUBLAS_OP_T || operation.transpose_b != CUBLAS_OP_N) {
    return refuse(unsupported, "FP8 needs A transposed and B not");
  }
  const auto stride_d = static_cast<std::uint64_t>(problem.d.stride) * size_of(problem.d.type);
  const bool packed =
      problem.k() % pack == 0 && problem.m() * size_of(problem.d.type) % pack == 0 &&
      static_cast<std::uint64_t>(problem.a.stride) % pack == 0 &&
      static_cast<std::uint64_t>(problem.b.stride) % pack == 0 && stride_d % pack == 0;
  if (!packed) return refuse(unsupported, "FP8 needs columns of whole 16 bytes");
  return operation.scale_c == nullptr && operation.scale_d == nullptr
             ? fine
             : refuse(invalid, "C and D are scaled only if they are FP8");
}

cublasStatus_t judge_epilogue(const Problem& problem) {
  const auto& operation = problem.operation;
  constexpr std::array known{CUBLASLT_EPILOGUE_DEFAULT,  CUBLASLT_EPILOGUE_BIAS,
                             CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                             CUBLASLT_EPILOGUE_DGELU,    CUBLASLT_EPILOGUE_BGRADB};
  bool listed = false;
  for (const auto each : known) listed = listed || operation.epilogue == each;
  if (!listed) return refuse(unsupported, "an epilogue that the stand-in does not do");
  const auto parts = parts_of(operation.epilogue);
  if (parts.vector()) {
    const auto wanted = problem.float8() ? CUDA_R_16BF : problem.d.type;
    if (problem.bias_type() != wanted) return refuse(unsupported, "the bias has another type");
  }
  if (problem.float8() && (parts.sums_of_b || parts.aux())) {
    return refuse(unsupported, "FP8 has no such epilogue on Hopper");
  }
  if (!parts.aux()) return fine;
  if (problem.aux_type() != problem.d.type) return refuse(unsupported, "aux has another type");
  if (operation.stride_aux < static_cast<std::int64_t>(problem.m())) {
    return refuse(invalid, "aux's columns overlap, or its leading dimension was not set");
  }
  return operation.stride_aux % 8 == 0
             ? fine
             : refuse(invalid, "aux's leading dimension is no multiple of 8");
}

}  // namespace

EpilogueParts parts_of(std::uint32_t epilogue) {
  EpilogueParts parts;
  parts.bias = epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  parts.gelu =
      epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  parts.gelu_gradient = epilogue == CUBLASLT_EPILOGUE_DGELU;
  parts.sums_of_b = epilogue == CUBLASLT_EPILOGUE_BGRADB;
  return parts;
}

std::int32_t Problem::bias_type() const {
  if (operation.bias_type >= 0) return operation.bias_type;
  return d.type;
}

std::int32_t Problem::aux_type() const {
  return operation.aux_type >= 0 ? operation.aux_type : d.type;
}

std::uint64_t Problem::digest() const {
  std::uint64_t digest = 0xCBF29CE484222325U;
  const auto take = [&](auto value) {
    digest = (digest ^ static_cast<std::uint64_t>(value)) * 0x100000001B3U;
    digest ^= digest >> 29;
  };
  take(operation.compute);
  take(operation.transpose_a);
  take(operation.transpose_b);
  take(operation.epilogue);
  take(bias_type());
  take(aux_type());
  take(operation.stride_aux);
  take(operation.fast_accumulation);
  for (const auto* layout : {&a, &b, &c, &d}) {
    take(layout->type);
    take(layout->rows);
    take(layout->columns);
    take(layout->stride);
  }
  return digest;
}

cublasStatus_t judge(const Problem& problem, int capability) {
  if (const auto status = judge_enumerations(problem.operation); status != fine) return status;
  const std::array<std::pair<const Layout*, const char*>, 4> layouts{
      {{&problem.a, "A"}, {&problem.b, "B"}, {&problem.c, "C"}, {&problem.d, "D"}}};
  for (const auto& [layout, name] : layouts) {
    if (const auto status = judge_layout(*layout, name); status != fine) return status;
  }
  for (const auto rule : {judge_batches, judge_shapes, judge_types, judge_epilogue}) {
    if (const auto status = rule(problem); status != fine) return status;
  }
  return judge_float8(problem, capability);
}

cublasStatus_t read_problem(const cublasLtMatmulDescOpaque_t* operation,
                            const cublasLtMatrixLayoutOpaque_t* const (&layouts)[4], int capability,
                            Problem& problem) {
  const bool all = read(operation, problem.operation) && read(layouts[0], problem.a) &&
                   read(layouts[1], problem.b) && read(layouts[2], problem.c) &&
                   read(layouts[3], problem.d);
  if (!all) return refuse(invalid, "a descriptor was not initialised");
  return judge(problem, capability);
}

}  // namespace trireme::testing::cublaslt
