// SPDX-License-Identifier: Apache-2.0
// The calls of an ObjectStore, on the server of swift_server.py, or of hdfs_server.py ("[s3]" left
// out).
#include "trireme/store/object_store.hpp"

#include "trireme/base/format.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

using namespace trireme;
using store::Depth;
using store::Existing;

namespace {

store::ObjectStore& steps() {
  static const auto opened = [] {
    const auto environment = base::Environment::capture(environ);
    store::use_environment(environment);
    const auto hdfs = environment.get("TRIREME_HDFS");
    return store::locate(hdfs ? base::format("webhdfs://{}", *hdfs) : "s3://steps").store;
  }();
  return *opened;
}
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string text_of(const std::string& name, std::size_t bytes, std::uint64_t offset = 0) {
  std::string text(bytes, '\0');
  steps().read(name, std::as_writable_bytes(std::span(text.data(), text.size())), offset);
  return text;
}
std::vector<std::string> names_of(const store::Listing& listing) {
  std::vector<std::string> names;
  for (const auto& object : listing.objects) names.push_back(object.name);
  return names;
}

}  // namespace

TEST_CASE("objects are written whole, read by ranges, and kept where they are to be") {
  CHECK_FALSE(steps().size("a/b"));
  CHECK(steps().put("a/b", bytes_of("hello"), Existing::keep));
  CHECK_FALSE(steps().put("a/b", bytes_of("other"), Existing::keep));
  CHECK(text_of("a/b", 5) == "hello");
  CHECK(steps().put("a/b", bytes_of("others"), Existing::replace));
  CHECK(steps().size("a/b") == 6);
  CHECK(text_of("a/b", 3, 2) == "her");
  CHECK_THROWS_AS(text_of("a/b", 5, 4), store::StoreError);
  CHECK_THROWS_AS(text_of("a/none", 5), store::StoreError);
  CHECK(steps().put("a/empty", {}, Existing::replace));
  CHECK(steps().size("a/empty") == 0);
  steps().remove({"a/b", "a/none", "a/empty"});
  CHECK_FALSE(steps().size("a/b"));
}

TEST_CASE("names may have any characters") {
  const std::string name = "odd/a b+c&d=\xc3\xbc~%41<x>'\"";
  CHECK(steps().put(name, bytes_of("hello"), Existing::replace));
  CHECK(text_of(name, 5) == "hello");
  CHECK(names_of(steps().list("odd/", Depth::one)) == std::vector{name.substr(4)});
  steps().remove({name});
  CHECK(steps().list("odd/", Depth::all).objects.empty());
}

TEST_CASE("listings tell folders from objects") {
  std::vector<std::string> names;
  for (int number = 0; number < 30; ++number) names.push_back(base::format("l/{:04}", number));
  names.emplace_back("l/below/one");
  names.emplace_back("l/below/two");
  std::vector<std::jthread> threads;
  for (std::size_t first = 0; first < 8; ++first) {
    threads.emplace_back([&names, first] {
      for (auto at = first; at < names.size(); at += 8) {
        steps().put(names[at], bytes_of("."), Existing::replace);
      }
    });
  }
  threads.clear();
  auto listing = steps().list("l/", Depth::one);
  CHECK(listing.objects.size() == 30);
  CHECK(listing.folders == std::vector<std::string>{"below"});
  CHECK(listing.objects.front().bytes == 1);
  listing = steps().list("l/", Depth::all);
  CHECK(listing.objects.size() == 32);
  CHECK(names_of(steps().list("l/below/", Depth::all)) == std::vector<std::string>{"one", "two"});
  steps().remove(names);
  CHECK(steps().list("l/", Depth::all).objects.empty());
}

TEST_CASE("an upload has its name once it is finished, and leaves nothing otherwise") {
  std::vector<std::byte> part(store::part_bytes);
  for (std::size_t at = 0; at < part.size(); ++at) part[at] = static_cast<std::byte>(at * 37 >> 5);
  const auto last = bytes_of("the last part is shorter");
  {
    const auto upload = steps().upload("up/whole");
    std::jthread other([&] { upload->write(1, last); });
    upload->write(0, part);
    other.join();
    CHECK_FALSE(steps().size("up/whole"));
    upload->finish();
  }
  CHECK(steps().size("up/whole") == part.size() + last.size());
  std::vector<std::byte> read(part.size() + last.size());
  steps().read("up/whole", read, 0);
  CHECK(std::equal(part.begin(), part.end(), read.begin()));
  CHECK(text_of("up/whole", 8, store::part_bytes) == "the last");
  {
    const auto given_up = steps().upload("up/half");
    given_up->write(0, part);
  }
  CHECK_FALSE(steps().size("up/half"));
  steps().remove_unfinished("up/");
  CHECK(names_of(steps().list("up/", Depth::all)) == std::vector<std::string>{"whole"});
  steps().remove({"up/whole"});
}

TEST_CASE("a bucket that is not there is named, and wrong credentials are", "[s3]") {
  const auto other = store::locate("s3://no-such-bucket/a");
  CHECK(other.name == "a");
  CHECK_THROWS_WITH(
      other.store->list("", Depth::one),
      Catch::Contains("cannot list 's3://no-such-bucket/'") && Catch::Contains("NoSuchBucket"));
  auto variables = base::Environment::capture(environ).variables();
  variables["AWS_SECRET_ACCESS_KEY"] = "another";
  store::use_environment(base::Environment(variables));
  CHECK_THROWS_WITH(store::locate("s3://wrong-key").store->list("", Depth::one),
                    Catch::Contains("check the credentials"));
}

TEST_CASE("a user who may not is named to HDFS, and told so", "[hdfs]") {
  auto variables = base::Environment::capture(environ).variables();
  const auto host = variables["TRIREME_HDFS"];
  variables["HADOOP_USER_NAME"] = "stranger";
  store::use_environment(base::Environment(variables));
  // Another name of the same server is another store.
  const auto url = base::format("webhdfs://localhost:{}/", host.substr(host.find(':') + 1));
  CHECK_THROWS_WITH(store::locate(url).store->size("name"),
                    Catch::Contains("AccessControlException, Permission denied") &&
                        Catch::Contains("check HADOOP_USER_NAME"));
}
