// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/track/node_endpoint.hpp"

#include <fcntl.h>

namespace trireme::track {
namespace {

namespace fs = std::filesystem;

void write_secret(const fs::path& path, const std::string& text) {
  std::error_code error;
  // Made anew, so that nobody has it open, and its mode is this one.
  fs::remove(path, error);
  const auto file = base::value_or_throw(
      base::open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600, base::ExitCode::checkpoint));
  base::write_at(file, std::as_bytes(std::span(text)), 0, path);
}

}  // namespace

TargetList::TargetList(const fs::path& run)
    : targets_(run / prometheus_targets), token_(run / prometheus_token) {}

TargetList::~TargetList() {
  std::error_code error;
  fs::remove(targets_, error);
}

void TargetList::write(const base::Json& targets, const std::string& token) const {
  base::success_or_throw(base::make_folders_durably(targets_.parent_path()));
  write_secret(token_, token);
  const auto list = base::Json::array({{{"targets", targets}, {"labels", base::Json::object()}}});
  base::write_file_durably(targets_, base::json_text(list) + "\n");
  base::log::info("track", "Prometheus finds {} in {}",
                  base::counted(static_cast<std::int64_t>(targets.size()), "node"),
                  targets_.string());
}

}  // namespace trireme::track
