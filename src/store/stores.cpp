// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/store/object_store.hpp"

#include "store/s3.hpp"
#include "store/webhdfs.hpp"

#include <map>
#include <mutex>

namespace trireme::store {
namespace {

/// Stores of this process, by "scheme://authority".
struct Stores {
  std::mutex mutex;
  base::Environment environment;
  std::map<std::string, std::shared_ptr<ObjectStore>, std::less<>> opened;
};

Stores& stores() {
  static Stores all;
  return all;
}

struct Url {
  std::string_view scheme;
  std::string_view authority;
  std::string_view name;
};

std::optional<Url> parse(std::string_view text) {
  for (const std::string_view scheme : {"s3", "webhdfs", "swebhdfs"}) {
    const auto begin = scheme.size() + 3;
    if (text.size() < begin || !text.starts_with(scheme) ||
        text.substr(scheme.size(), 3) != "://") {
      continue;
    }
    const auto rest = text.substr(begin);
    const auto slash = std::min(rest.find('/'), rest.size());
    auto name = rest.substr(std::min(slash + 1, rest.size()));
    while (name.ends_with('/')) name.remove_suffix(1);
    return Url{scheme, rest.substr(0, slash), name};
  }
  return std::nullopt;
}

}  // namespace

bool is_url(const std::filesystem::path& path) {
  return parse(path.native()).has_value();
}

Location locate(const std::filesystem::path& url) {
  const auto parts = parse(url.native());
  if (!parts) {
    throw base::Error(
        base::ExitCode::usage,
        base::format(
            "'{}' is no URL of an object store; write s3://BUCKET/NAME or webhdfs://HOST:PORT/PATH",
            base::printable(url.native())));
  }
  auto& all = stores();
  const std::lock_guard lock(all.mutex);
  const auto root = base::format("{}://{}", parts->scheme, parts->authority);
  auto& store = all.opened[root];
  if (store == nullptr) {
    const std::string authority(parts->authority);
    if (parts->scheme == "s3") {
      store = std::make_shared<S3Store>(authority, all.environment);
    } else {
      store = std::make_shared<WebHdfsStore>(parts->scheme == "webhdfs" ? "http://" : "https://",
                                             authority, all.environment);
    }
  }
  return {store, std::string(parts->name)};
}

void use_environment(base::Environment environment) {
  auto& all = stores();
  const std::lock_guard lock(all.mutex);
  all.environment = std::move(environment);
}

}  // namespace trireme::store
