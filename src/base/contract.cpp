// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

namespace trireme::base {

void contract_broken(const char* kind, const char* condition, std::string_view text,
                     std::source_location where) {
  throw Error(ExitCode::internal,
              format("{} '{}' at {}:{}: {} (this is a defect of Trireme; please report it)", kind,
                     condition, where.file_name(), where.line(), text),
              where);
}

}  // namespace trireme::base
