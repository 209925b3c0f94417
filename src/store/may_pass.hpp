// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/web/http.hpp"

#include <string_view>

namespace trireme::store {

/// True for answers that may be others later: by their status, or by their error, whatever it is.
bool may_pass(const web::HttpResponse& response, std::string_view error_name);

}  // namespace trireme::store
