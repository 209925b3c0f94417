// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/schema/options.hpp"

/// The typed values of a configuration, and the enums among them, are the schema's.
namespace trireme::config {

using namespace schema;

}  // namespace trireme::config
