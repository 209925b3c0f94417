// SPDX-License-Identifier: Apache-2.0
#include "store/webhdfs.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/random_id.hpp"
#include "trireme/base/text.hpp"

#include "store/may_pass.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

// Operations as in hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html.
namespace trireme::store {
namespace {

/// Part of the names of files that are not whole yet.
constexpr std::string_view unfinished = "._unfinished-";

std::string temporary_name(std::string_view name) {
  return base::format("{}{}{}", name, unfinished, base::random_id());
}

/// Member of an answer's JSON; null without one.
base::Json member(const web::HttpResponse& response, const char* name) {
  const auto json = base::parse_json(response.text, "the answer");
  if (!json || !json->is_object() || !json->contains(name)) return nullptr;
  return json->at(name);
}

template <typename T>
T value_or(const base::Json& object, const char* name, T otherwise) {
  if (!object.is_object() || !object.contains(name)) return otherwise;
  try {
    return object.at(name).get<T>();
  } catch (const base::Json::exception&) {
    return otherwise;
  }
}

/// Moment so many milliseconds after 1970.
std::chrono::system_clock::time_point moment_of(std::int64_t milliseconds) {
  return std::chrono::system_clock::time_point(std::chrono::milliseconds(milliseconds));
}

}  // namespace

/// Parts of one file, which HDFS takes one behind the other: threads wait for their turn.
class WebHdfsUpload : public Upload {
 public:
  WebHdfsUpload(WebHdfsStore& store, std::string_view name)
      : store_(store), name_(name), temporary_(temporary_name(name)) {
    store_.demand({"PUT", "CREATE", temporary_, {{"overwrite", "true"}}, true}, "begin to write");
  }
  WebHdfsUpload(const WebHdfsUpload&) = delete;
  WebHdfsUpload& operator=(const WebHdfsUpload&) = delete;
  ~WebHdfsUpload() override {
    if (finished_) return;
    try {
      store_.perform({"DELETE", "DELETE", temporary_});
    } catch (const std::exception& error) {
      base::log::local::warning("store", "what was written of '{}' stays: {}", store_.url_of(name_),
                                error.what());
    }
  }

  void write(std::size_t number, std::span<const std::byte> bytes) override {
    {
      std::unique_lock lock(mutex_);
      turn_.wait(lock, [&] { return next_ == number || abandoned_; });
      if (abandoned_) {
        throw StoreError(base::format("'{}' is given up", store_.url_of(name_)), false);
      }
    }
    try {
      append(bytes);
    } catch (...) {
      abandon();
      throw;
    }
    const std::lock_guard lock(mutex_);
    ++next_;
    turn_.notify_all();
  }

  void abandon() override {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    turn_.notify_all();
  }

  void finish() override {
    // A part that came late, after it was sent once more, is there twice.
    if (const auto bytes = store_.size(temporary_); bytes != bytes_) throw_length(bytes);
    store_.give_name(temporary_, name_, bytes_, Existing::replace);
    finished_ = true;
  }

 private:
  /// Appends behind bytes_. What came of a part without an answer the file's length tells: all of
  /// it, nothing, or a beginning, which is cut off again.
  void append(std::span<const std::byte> bytes) {
    const auto end = bytes_ + bytes.size();
    web::Backoff backoff(store_.patience_);
    for (;;) {
      const auto answer = store_.perform_once({"POST", "APPEND", temporary_, {}, true, bytes});
      if (answer.response.ok()) break;
      if (!may_pass(answer.response, answer.exception) ||
          !backoff.wait(store_.url_of(name_), answer.response)) {
        store_.refuse("write", temporary_, answer);
      }
      const auto found = store_.size(temporary_);
      if (found == end) break;
      if (found > bytes_ && found < end) {
        const auto length = base::format("{}", bytes_);
        store_.demand({"POST", "TRUNCATE", temporary_, {{"newlength", length}}}, "cut");
      } else if (found != bytes_) {
        throw_length(found);
      }
    }
    bytes_ = end;
  }

  [[noreturn]] void throw_length(std::optional<std::uint64_t> found) const {
    throw StoreError(base::format("'{}' has {} bytes instead of {} (parts are missing or there "
                                  "twice, so that it is given up); save again",
                                  store_.url_of(name_), found.value_or(0), bytes_),
                     true);
  }

  WebHdfsStore& store_;
  std::string name_;
  std::string temporary_;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::size_t next_ = 0;
  /// Bytes of the parts before next_; only whose turn it is looks at them.
  std::uint64_t bytes_ = 0;
  bool abandoned_ = false;
  bool finished_ = false;
};

WebHdfsStore::WebHdfsStore(std::string scheme, std::string host,
                           const base::Environment& environment, std::chrono::milliseconds patience)
    : scheme_(std::move(scheme)), host_(std::move(host)), patience_(patience) {
  if (host_.empty() || host_.find_first_of("/?#@ ") != std::string::npos) {
    throw base::Error(base::ExitCode::usage,
                      base::format("'webhdfs://{}' names no server; write webhdfs://HOST:PORT/PATH",
                                   base::printable(host_)));
  }
  if (const auto token = environment.get("HADOOP_WEBHDFS_TOKEN"); token && !token->empty()) {
    identity_["delegation"] = *token;
  } else if (const auto user = environment.get("HADOOP_USER_NAME"); user && !user->empty()) {
    identity_["user.name"] = *user;
  }
}

std::string WebHdfsStore::url_of(std::string_view name) const {
  return base::format("{}://{}/{}", scheme_ == "https://" ? "swebhdfs" : "webhdfs", host_, name);
}

web::HttpResponse WebHdfsStore::send(const Call& call) {
  auto url = base::format("{}{}/webhdfs/v1/{}?op={}", scheme_, host_,
                          web::url_encoded(call.name, true), call.operation);
  auto query = identity_;
  query.insert(call.query.begin(), call.query.end());
  for (const auto& [name, value] : query)
    url += base::format("&{}={}", name, web::url_encoded(value));
  auto response = client_.perform({call.method, url, {}});
  if (!call.moves_data || response.status != 307) return response;
  const auto location = response.header("location");
  // The token is in the location, and is no secret without TLS.
  if (!location.starts_with(scheme_)) {
    return {0, {}, "the answer leads away from " + scheme_, true};
  }
  return client_.perform({call.method,
                          location,
                          {"Content-Type: application/octet-stream"},
                          call.body,
                          call.destination});
}

WebHdfsStore::Answer WebHdfsStore::perform_once(const Call& call) {
  Answer answer{send(call)};
  if (!answer.response.ok()) {
    const auto remote = member(answer.response, "RemoteException");
    answer.exception = value_or<std::string>(remote, "exception", "");
    answer.message = value_or<std::string>(remote, "message", "");
  }
  return answer;
}

WebHdfsStore::Answer WebHdfsStore::perform(const Call& call) {
  web::Backoff backoff(patience_);
  for (;;) {
    auto answer = perform_once(call);
    if (!may_pass(answer.response, answer.exception) ||
        !backoff.wait(url_of(call.name), answer.response)) {
      return answer;
    }
  }
}

WebHdfsStore::Answer WebHdfsStore::demand(const Call& call, std::string_view doing) {
  auto answer = perform(call);
  if (!answer.response.ok()) refuse(doing, call.name, answer);
  return answer;
}

void WebHdfsStore::refuse(std::string_view doing, std::string_view name,
                          const Answer& answer) const {
  const auto status = answer.response.status;
  auto reason = status == 0 || answer.response.is_final ? answer.response.text
                                                        : base::format("HTTP {}", status);
  if (!answer.exception.empty()) {
    reason += base::format(" {}, {}", base::printable(answer.exception),
                           base::printable(base::cut_utf8(answer.message, 300)));
  }
  const bool passes = may_pass(answer.response, answer.exception);
  const char* const remedy =
      !passes && (status == 401 || status == 403)
          ? "check HADOOP_USER_NAME or HADOOP_WEBHDFS_TOKEN, and what they may do in this folder"
      : status == 0 ? "check the network, and that WebHDFS listens there"
                    : "try again later";
  throw StoreError(base::format("cannot {} '{}': {}; {}", doing, url_of(name), reason, remedy),
                   passes);
}

std::optional<base::Json> WebHdfsStore::entries(std::string_view folder) {
  const auto answer = perform({"GET", "LISTSTATUS", std::string(folder)});
  if (answer.response.status == 404) return std::nullopt;
  if (!answer.response.ok()) refuse("list", folder, answer);
  auto list = member(answer.response, "FileStatuses");
  if (!list.is_object() || !list.contains("FileStatus") || !list["FileStatus"].is_array()) {
    refuse("list", folder, {{0, {}, "the answer is no listing"}});
  }
  return list["FileStatus"];
}

void WebHdfsStore::list_into(Listing& listing, const std::string& folder, const std::string& below,
                             Depth depth) {
  const auto found = entries(folder);
  if (!found) return;
  for (const auto& entry : *found) {
    const auto name = value_or<std::string>(entry, "pathSuffix", "");
    // The time of a file that is not whole yet counts.
    if (const auto changed = value_or<std::int64_t>(entry, "modificationTime", 0); changed > 0) {
      listing.newest = std::max(listing.newest, std::optional(moment_of(changed)));
    }
    if (name.empty() || name.find(unfinished) != std::string::npos) continue;
    if (value_or<std::string>(entry, "type", "") != "DIRECTORY") {
      listing.objects.push_back({below + name, value_or<std::uint64_t>(entry, "length", 0)});
    } else if (depth == Depth::one) {
      listing.folders.push_back(below + name);
    } else {
      list_into(listing, base::format("{}/{}", folder, name), base::format("{}{}/", below, name),
                depth);
    }
  }
}

Listing WebHdfsStore::list(std::string_view prefix, Depth depth) {
  Listing listing;
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  list_into(listing, std::string(prefix), "", depth);
  return listing;
}

std::optional<std::uint64_t> WebHdfsStore::size(std::string_view name) {
  const auto answer = perform({"GET", "GETFILESTATUS", std::string(name)});
  if (answer.response.status == 404) return std::nullopt;
  if (!answer.response.ok()) refuse("examine", name, answer);
  const auto status = member(answer.response, "FileStatus");
  if (value_or<std::string>(status, "type", "") != "FILE") return std::nullopt;
  return value_or<std::uint64_t>(status, "length", 0);
}

void WebHdfsStore::read(std::string_view name, std::span<std::byte> bytes, std::uint64_t offset) {
  if (bytes.empty()) return;
  demand({"GET",
          "OPEN",
          std::string(name),
          {{"offset", base::format("{}", offset)}, {"length", base::format("{}", bytes.size())}},
          true,
          {},
          bytes},
         "read");
}

bool WebHdfsStore::has_name(const std::string& temporary, std::string_view name,
                            std::uint64_t bytes) {
  try {
    return !size(temporary) && size(name) == bytes;
  } catch (const StoreError&) {
    return false;  // the answer to the rename is the one to report
  }
}

bool WebHdfsStore::give_name(const std::string& temporary, std::string_view name,
                             std::uint64_t bytes, Existing existing) {
  Call call{"PUT", "RENAME", temporary, {{"destination", base::format("/{}", name)}}};
  if (existing == Existing::replace) call.query["renameoptions"] = "OVERWRITE";
  const auto answer = perform(call);
  if (existing == Existing::replace && !answer.response.ok() && has_name(temporary, name, bytes)) {
    return true;
  }
  if (!answer.response.ok()) refuse("name", temporary, answer);
  if (existing == Existing::replace) return true;
  // HDFS says no more than this of a rename onto a name that is taken.
  const auto renamed = member(answer.response, "boolean");
  if (renamed.is_boolean() && renamed.get<bool>()) return true;
  demand({"DELETE", "DELETE", temporary}, "remove");
  return false;
}

bool WebHdfsStore::put(std::string_view name, std::span<const std::byte> bytes, Existing existing) {
  const auto temporary = temporary_name(name);
  demand({"PUT", "CREATE", temporary, {{"overwrite", "true"}}, true, bytes}, "write");
  return give_name(temporary, name, bytes.size(), existing);
}

std::unique_ptr<Upload> WebHdfsStore::upload(std::string_view name) {
  return std::make_unique<WebHdfsUpload>(*this, name);
}

void WebHdfsStore::remove(const std::vector<std::string>& names) {
  std::set<std::string> folders;
  for (const auto& name : names) {
    const auto answer = perform({"DELETE", "DELETE", name});
    if (!answer.response.ok() && answer.response.status != 404) refuse("remove", name, answer);
    folders.insert(name.substr(0, std::min(name.rfind('/'), name.size())));
  }
  for (const auto& folder : folders) remove_empty(folder);
}

// A folder goes with its last file, as prefixes of objects do; one that is not empty stays.
void WebHdfsStore::remove_empty(std::string folder) {
  while (folder.find('/') != std::string::npos) {
    const auto answer = perform({"DELETE", "DELETE", folder, {{"recursive", "false"}}});
    const auto removed = member(answer.response, "boolean");
    if (!answer.response.ok() || !removed.is_boolean() || !removed.get<bool>()) return;
    folder.resize(folder.rfind('/'));
  }
}

void WebHdfsStore::remove_unfinished(std::string_view prefix) {
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  const auto found = entries(prefix);
  if (!found) return;
  std::vector<std::string> names;
  for (const auto& entry : *found) {
    const auto suffix = value_or<std::string>(entry, "pathSuffix", "");
    const auto name = base::format("{}/{}", prefix, suffix);
    if (suffix.find(unfinished) != std::string::npos) {
      names.push_back(name);
    } else if (value_or<std::string>(entry, "type", "") == "DIRECTORY") {
      remove_unfinished(name);
    }
  }
  remove(names);
  if (names.empty() && found->empty()) remove_empty(std::string(prefix));
}

}  // namespace trireme::store
