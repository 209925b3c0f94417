// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/data_sheet.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using device::data_sheet_flops;
using device::DType;

TEST_CASE("GPUs are known by whole words of their names") {
  CHECK(data_sheet_flops("NVIDIA H200", DType::bf16) == 989.4e12);
  CHECK(data_sheet_flops("NVIDIA H100 80GB HBM3", DType::bf16) == 989.4e12);
  CHECK(data_sheet_flops("NVIDIA H100 PCIe", DType::bf16) == 756e12);
  CHECK(data_sheet_flops("NVIDIA H100 80GB HBM3", DType::f32) == 66.9e12);
  CHECK(data_sheet_flops("NVIDIA A100-SXM4-80GB", DType::bf16) == 312e12);
  CHECK(data_sheet_flops("NVIDIA A10", DType::bf16) == 125e12);
  CHECK(data_sheet_flops("NVIDIA L40S", DType::bf16) == 362e12);
  CHECK(data_sheet_flops("NVIDIA GH200 480GB", DType::bf16) == 989.4e12);
  for (const char* name : {"", "NVIDIA", "Tesla V100-SXM2-32GB", "NVIDIA H2000", "AH100"}) {
    CAPTURE(name);
    CHECK_FALSE(data_sheet_flops(name, DType::bf16));
  }
}
