// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/versions.hpp"

#include "data/tokenizer/text/regex.hpp"

#include <utf8proc.h>
#include <zlib.h>
#include <zstd.h>

namespace trireme::data {

std::vector<base::LibraryVersion> library_versions() {
  return {{"PCRE2", regex_library_version()},
          {"utf8proc", utf8proc_version()},
          {"zlib", zlibVersion()},
          {"zstd", ZSTD_versionString()}};
}

}  // namespace trireme::data
