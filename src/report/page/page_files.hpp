// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::report {

/// src/report/page.css and page.js.
extern const char* const page_style;
extern const char* const page_script;

}  // namespace trireme::report
