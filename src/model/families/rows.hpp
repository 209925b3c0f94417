// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/family.hpp"

namespace trireme::model {

extern const Family gpt2_family;
extern const Family llama_family;
extern const Family qwen3_family;

}  // namespace trireme::model
