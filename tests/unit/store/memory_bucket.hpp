// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/format.hpp"
#include "trireme/store/object_store.hpp"

#include "unit/web/scripted_server.hpp"

#include <chrono>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace trireme::tests {

/// Bucket of a server of S3 in memory, whose objects a test may age and whose answers it may
/// replace.
class MemoryBucket {
 public:
  struct Object {
    std::string text;
    std::time_t changed = 0;
  };
  /// Answer to a request of this first line; `perform` does what it asks for, and answers.
  using Perform = std::function<std::string()>;
  using Hook = std::function<std::string(const std::string& line, const Perform& perform)>;

  MemoryBucket()
      : server_([this](std::size_t, const ScriptedServer::Request& request) {
          return answer(request);
        }) {
    static int count = 0;
    name_ = base::format("bucket-{}", ++count);
    store::use_environment(base::Environment({{"AWS_ENDPOINT_URL_S3", server_.url()},
                                              {"AWS_ACCESS_KEY_ID", "id"},
                                              {"AWS_SECRET_ACCESS_KEY", "hidden"}}));
  }

  std::string url() const { return base::format("s3://{}", name_); }
  void set_hook(Hook hook) {
    const std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
  }
  /// Lets objects be so much older whose names begin so.
  void age(const std::string& prefix, std::chrono::seconds by) {
    const std::lock_guard lock(mutex_);
    for (auto& [name, object] : objects_) {
      if (name.starts_with(prefix)) object.changed -= by.count();
    }
  }
  void put(const std::string& name, const std::string& text) {
    const std::lock_guard lock(mutex_);
    objects_[name] = {text, std::time(nullptr)};
  }
  std::set<std::string> names() const {
    const std::lock_guard lock(mutex_);
    std::set<std::string> all;
    for (const auto& [name, object] : objects_) all.insert(name);
    return all;
  }
  std::string text_of(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return objects_.at(name).text;
  }

 private:
  static std::string decoded(std::string_view text) {
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '%') {
        plain += static_cast<char>(std::stoi(std::string(text.substr(at + 1, 2)), nullptr, 16));
        at += 2;
      } else {
        plain += text[at];
      }
    }
    return plain;
  }
  static std::string between(const std::string& text, const std::string& begin,
                             std::string_view ends) {
    const auto found = text.find(begin);
    if (found == std::string::npos) return {};
    const auto at = found + begin.size();
    return decoded(text.substr(at, text.find_first_of(ends, at) - at));
  }

  std::string answer(const ScriptedServer::Request& request) {
    const std::lock_guard lock(mutex_);
    const auto line = request.head.substr(0, request.head.find("\r\n"));
    const auto perform = [&] { return answer(line, request); };
    return hook_ ? hook_(line, perform) : perform();
  }

  std::string answer(const std::string& line, const ScriptedServer::Request& request) {
    const auto name = between(line, base::format("/{}/", name_), "? ");
    if (line.starts_with("POST")) return remove(request.body);
    if (line.find("uploads=") != std::string::npos) {
      return ScriptedServer::answer(200, "<ListMultipartUploadsResult/>");
    }
    if (line.find("list-type=2") != std::string::npos) {
      return list(between(line, "prefix=", "& "), line.find("delimiter=") != std::string::npos);
    }
    if (line.starts_with("PUT")) {
      if (request.head.find("\r\nif-none-match: *") != std::string::npos &&
          objects_.contains(name)) {
        return ScriptedServer::answer(412, "");
      }
      objects_[name] = {request.body, std::time(nullptr)};
      return ScriptedServer::answer(200, "");
    }
    const auto found = objects_.find(name);
    if (found == objects_.end()) return ScriptedServer::answer(404, "");
    const auto& text = found->second.text;
    if (line.starts_with("HEAD")) {
      auto whole = ScriptedServer::answer(200, text);
      whole.resize(whole.size() - text.size());
      return whole;
    }
    const auto begin = std::stoul(between(request.head, "\r\nrange: bytes=", "-"));
    const auto end = std::stoul(between(request.head, base::format("bytes={}-", begin), "\r"));
    return ScriptedServer::answer(206, text.substr(begin, end + 1 - begin));
  }

  std::string remove(const std::string& body) {
    for (std::size_t at = 0; (at = body.find("<Key>", at)) != std::string::npos; ++at) {
      objects_.erase(body.substr(at + 5, body.find('<', at + 5) - at - 5));
    }
    return ScriptedServer::answer(200, "<DeleteResult/>");
  }

  std::string list(const std::string& prefix, bool is_of_one_level) const {
    std::string text = "<ListBucketResult>";
    std::set<std::string> folders;
    for (const auto& [name, object] : objects_) {
      if (!name.starts_with(prefix)) continue;
      const auto slash = name.find('/', prefix.size());
      if (is_of_one_level && slash != std::string::npos) {
        folders.insert(name.substr(0, slash + 1));
        continue;
      }
      std::tm parts{};
      ::gmtime_r(&object.changed, &parts);
      char moment[32];
      std::strftime(moment, sizeof moment, "%Y-%m-%dT%H:%M:%S.000Z", &parts);
      text += base::format(
          "<Contents><Key>{}</Key><Size>{}</Size><LastModified>{}</LastModified></Contents>", name,
          object.text.size(), static_cast<const char*>(moment));
    }
    for (const auto& folder : folders) {
      text += base::format("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", folder);
    }
    return ScriptedServer::answer(200, text + "</ListBucketResult>");
  }

  mutable std::mutex mutex_;
  std::string name_;
  Hook hook_;
  std::map<std::string, Object> objects_;
  ScriptedServer server_;
};

}  // namespace trireme::tests
