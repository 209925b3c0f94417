#pragma once

#include "trireme/launch/contract.hpp"

#include <string>
#include <vector>

namespace trireme::spank {

/// What the trainer's configuration would refuse of a contract, by the same table of keys and the
/// same reader of values: a job that cannot start need not wait in the queue for it.
std::vector<std::string> refused_by_configuration(const launch::Contract& contract);

}  // namespace trireme::spank
