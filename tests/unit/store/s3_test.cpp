// SPDX-License-Identifier: Apache-2.0
// Answers that a server may give and a good one rarely does; a real one: tests/store.
#include "store/s3.hpp"

#include "trireme/base/file.hpp"

#include "support/temporary_folder.hpp"
#include "unit/web/scripted_server.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace trireme;
using tests::ScriptedServer;

namespace {

store::S3Store store_at(const std::string& url) {
  return {"bucket",
          base::Environment({{"AWS_ENDPOINT_URL_S3", url},
                             {"AWS_ACCESS_KEY_ID", "id"},
                             {"AWS_SECRET_ACCESS_KEY", "hidden"}}),
          std::chrono::milliseconds(300)};
}
std::string error(std::string_view code, std::string_view message = "Because.") {
  return base::format("<?xml version='1.0'?><Error><Code>{}</Code><Message>{}</Message></Error>",
                      code, message);
}
template <typename Act>
store::StoreError failure_of(const Act& act) {
  try {
    act();
  } catch (const store::StoreError& failed) {
    return failed;
  }
  FAIL("nothing was thrown");
  throw;
}
bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("what may pass is tried again, and given up when the patience ends") {
  const ScriptedServer busy_once([](std::size_t index, const auto&) {
    return index == 0 ? ScriptedServer::answer(503, error("SlowDown"))
                      : ScriptedServer::answer(200, "", "Content-Length: 0\r\n");
  });
  auto store = store_at(busy_once.url());
  CHECK(store.put("name", {}, store::Existing::replace));
  CHECK(busy_once.requests().size() == 2);

  const ScriptedServer busy([](std::size_t, const auto&) {
    return ScriptedServer::answer(503, error("SlowDown", "Reduce\nyour rate."));
  });
  auto other = store_at(busy.url());
  const auto failed = failure_of([&] { other.size("a/name"); });
  CHECK(failed.may_pass());
  const auto told = failure_of([&] { other.list("a/", store::Depth::one); });
  CHECK(std::string(told.what()) ==
        base::format(
            "cannot list 's3://bucket/a/': HTTP 503 SlowDown, Reduce\\x0ayour rate. from {}; "
            "try again later",
            busy.url()));
  CHECK(busy.requests().size() > 4);
}

TEST_CASE("credentials that expire are read again, once") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "credentials";
  const auto write = [&](std::string_view id) {
    base::write_file_durably(file, base::format("[default]\naws_access_key_id = {}\n"
                                                "aws_secret_access_key = hidden\n",
                                                id));
    std::filesystem::permissions(
        file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  };
  write("former");
  const ScriptedServer server([&](std::size_t, const ScriptedServer::Request& request) {
    if (holds(request.head, "credential=fresh/")) return ScriptedServer::answer(200, "");
    write("fresh");
    return ScriptedServer::answer(403, error("ExpiredToken"));
  });
  store::S3Store store("bucket",
                       base::Environment({{"AWS_ENDPOINT_URL_S3", server.url()},
                                          {"AWS_SHARED_CREDENTIALS_FILE", file.string()}}),
                       std::chrono::milliseconds(300));
  CHECK(store.put("name", {}, store::Existing::replace));
  CHECK(server.requests().size() == 2);

  const ScriptedServer never(
      [&](std::size_t, const auto&) { return ScriptedServer::answer(403, error("ExpiredToken")); });
  auto other = store_at(never.url());
  CHECK_FALSE(failure_of([&] { other.list("", store::Depth::all); }).may_pass());
  CHECK(never.requests().size() == 2);
}

TEST_CASE("a server that cannot be reached is named") {
  auto store = store_at("http://127.0.0.1:1");
  const auto failed = failure_of([&] { store.size("name"); });
  CHECK(failed.may_pass());
  CHECK(holds(failed.what(), "cannot examine 's3://bucket/name'"));
  CHECK(holds(failed.what(),
              "from http://127.0.0.1:1; check the network, "
              "AWS_ENDPOINT_URL_S3 and AWS_CA_BUNDLE"));
}

TEST_CASE("what cannot pass is said at once, with what to do, and without the secret") {
  struct Case {
    int status;
    std::string code, headers, remedy;
  };
  for (const auto& [status, code, headers, remedy] :
       {Case{404, "NoSuchBucket", "", "make the bucket"},
        Case{403, "SignatureDoesNotMatch", "", "check the credentials, the clock"},
        Case{301, "PermanentRedirect", "x-amz-bucket-region: eu-north-1\r\n",
             "set AWS_REGION=eu-north-1"}}) {
    const ScriptedServer server([&](std::size_t, const auto&) {
      return ScriptedServer::answer(status, error(code), headers);
    });
    auto store = store_at(server.url());
    const auto failed = failure_of([&] { store.list("", store::Depth::all); });
    CHECK_FALSE(failed.may_pass());
    CHECK(holds(failed.what(), remedy));
    CHECK_FALSE(holds(failed.what(), "hidden"));
    CHECK(server.requests().size() == 1);
  }
}

TEST_CASE("reads take what was asked for, or fail") {
  std::array<std::byte, 4> bytes{};
  const auto read = [&](const std::string& answer, std::uint64_t offset) {
    const ScriptedServer server([&](std::size_t, const auto&) { return answer; });
    auto store = store_at(server.url());
    store.read("name", bytes, offset);
    CHECK(holds(server.requests().front().head,
                base::format("\r\nrange: bytes={}-{}", offset, offset + 3)));
  };
  read(ScriptedServer::answer(206, "abcd"), 8);
  CHECK(static_cast<char>(bytes[3]) == 'd');
  // A whole answer of another length will not be another one later.
  CHECK_FALSE(failure_of([&] { read(ScriptedServer::answer(206, "abc"), 8); }).may_pass());
  CHECK(holds(failure_of([&] { read(ScriptedServer::answer(206, "abc"), 8); }).what(),
              "ends 1 bytes too early"));
  CHECK(holds(failure_of([&] { read(ScriptedServer::answer(206, "abcde"), 8); }).what(),
              "longer than what was asked for"));
  CHECK(holds(failure_of([&] { read(ScriptedServer::answer(200, "abcd"), 8); }).what(),
              "use a server that knows ranges"));
  // The connection ends in the middle.
  CHECK(
      holds(failure_of([&] { read("HTTP/1.1 206 Said\r\nContent-Length: 4\r\n\r\nab", 8); }).what(),
            "cannot read 's3://bucket/name'"));
}

TEST_CASE("a conditional write knows whether the object was there") {
  const auto put = [](const ScriptedServer& server) {
    auto store = store_at(server.url());
    return store.put("name", std::as_bytes(std::span("text", 4)), store::Existing::keep);
  };
  const ScriptedServer takes(
      [](std::size_t, const auto&) { return ScriptedServer::answer(200, ""); });
  CHECK(put(takes));
  CHECK(holds(takes.requests().front().head, "\r\nif-none-match: *"));
  CHECK(takes.requests().front().body == "text");
  const ScriptedServer has([](std::size_t, const auto&) {
    return ScriptedServer::answer(412, error("PreconditionFailed"));
  });
  CHECK_FALSE(put(has));
  // One that knows no conditions is asked first.
  const auto without = [](bool has_object) {
    return [has_object](std::size_t index, const auto&) {
      if (index == 0) return ScriptedServer::answer(501, error("NotImplemented"));
      if (index == 1) return ScriptedServer::answer(has_object ? 200 : 404, "");
      return ScriptedServer::answer(200, "");
    };
  };
  const ScriptedServer old(without(false));
  CHECK(put(old));
  CHECK(old.requests().size() == 3);
  const ScriptedServer old_that_has(without(true));
  CHECK_FALSE(put(old_that_has));
  CHECK(old_that_has.requests().size() == 2);
}

namespace {

constexpr std::string_view begun =
    "<InitiateMultipartUploadResult><UploadId>u/1</UploadId></InitiateMultipartUploadResult>";
bool is_end(const ScriptedServer::Request& request) {
  return request.head.starts_with("POST /bucket/name?uploadId=");
}
/// Answer of a server to an upload of one part but for its end.
std::string answer_until_end(const ScriptedServer::Request& request) {
  if (request.head.starts_with("POST")) return ScriptedServer::answer(200, begun);
  if (request.head.starts_with("PUT")) return ScriptedServer::answer(200, "", "ETag: \"tag\"\r\n");
  return ScriptedServer::answer(204, "");
}

}  // namespace

TEST_CASE("an upload that its server finishes with an error is a failure, and is removed") {
  const ScriptedServer server([](std::size_t, const ScriptedServer::Request& request) {
    if (is_end(request)) return ScriptedServer::answer(200, error("InternalError"));
    if (request.head.starts_with("HEAD")) return ScriptedServer::answer(404, "");
    return answer_until_end(request);
  });
  auto store = store_at(server.url());
  auto upload = store.upload("name");
  upload->write(0, std::as_bytes(std::span("text", 4)));
  const auto failed = failure_of([&] { upload->finish(); });
  CHECK(holds(failed.what(), "HTTP 200 InternalError"));
  CHECK(failed.may_pass());
  upload.reset();
  const auto requests = server.requests();
  REQUIRE(requests.size() >= 6);
  CHECK(requests[1].head.starts_with("PUT /bucket/name?partNumber=1&uploadId=u%2F1 "));
  CHECK(requests[2].body ==
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"tag\"</ETag></Part>"
        "</CompleteMultipartUpload>");
  CHECK(is_end(requests[3]));
  CHECK(requests.back().head.starts_with("DELETE /bucket/name?uploadId=u%2F1 "));
}

TEST_CASE("an upload whose end had no answer is known by the object's length") {
  for (const auto* const length : {"4", "5"}) {
    int ends = 0;
    const ScriptedServer server([&](std::size_t, const ScriptedServer::Request& request) {
      if (is_end(request)) {
        return ++ends == 1 ? ScriptedServer::answer(503, "")
                           : ScriptedServer::answer(404, error("NoSuchUpload"));
      }
      if (request.head.starts_with("HEAD")) {
        return base::format("HTTP/1.1 200 Said\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                            length);
      }
      return answer_until_end(request);
    });
    auto store = store_at(server.url());
    const auto upload = store.upload("name");
    upload->write(0, std::as_bytes(std::span("text", 4)));
    if (std::string_view(length) == "4") {
      upload->finish();
    } else {
      CHECK(holds(failure_of([&] { upload->finish(); }).what(), "NoSuchUpload"));
    }
    CHECK(ends == 2);
  }
}

TEST_CASE("errors that pass by their name are tried again whatever their status") {
  for (const auto& [its_status, its_code] :
       {std::pair{400, "RequestTimeout"}, {409, "ConditionalRequestConflict"}, {200, "SlowDown"}}) {
    const ScriptedServer server(
        [&, status = its_status, code = its_code](std::size_t index, const auto&) {
          return index == 0 ? ScriptedServer::answer(status, error(code))
                            : ScriptedServer::answer(200, "");
        });
    auto store = store_at(server.url());
    CHECK(store.put("name", {}, store::Existing::keep));
    CHECK(server.requests().size() == 2);
    const ScriptedServer always([status = its_status, code = its_code](std::size_t, const auto&) {
      return ScriptedServer::answer(status == 200 ? 400 : status, error(code));
    });
    auto other = store_at(always.url());
    std::array<std::byte, 4> bytes{};
    CHECK(failure_of([&] { other.read("name", bytes, 0); }).may_pass());
  }
}

TEST_CASE("a listing has all its pages") {
  const ScriptedServer server([](std::size_t index, const auto&) {
    return ScriptedServer::answer(
        200, index == 0
                 ? "<ListBucketResult><Contents><Key>a/b&amp;c</Key><Size>5</Size></Contents>"
                   "<CommonPrefixes><Prefix>a/d/</Prefix></CommonPrefixes>"
                   "<IsTruncated>true</IsTruncated>"
                   "<NextContinuationToken>n=</NextContinuationToken></ListBucketResult>"
                 : "<ListBucketResult><CommonPrefixes><Prefix>a/e/</Prefix></CommonPrefixes>"
                   "<IsTruncated>false</IsTruncated></ListBucketResult>");
  });
  auto store = store_at(server.url());
  const auto listing = store.list("a/", store::Depth::one);
  REQUIRE(listing.objects.size() == 1);
  CHECK(listing.objects[0].name == "b&c");
  CHECK(listing.objects[0].bytes == 5);
  CHECK(listing.folders == std::vector<std::string>{"d", "e"});
  CHECK(holds(server.requests()[1].head, "continuation-token=n%3D&delimiter=%2F"));
  const ScriptedServer broken([](std::size_t, const auto&) {
    return ScriptedServer::answer(200, "<html>Welcome to the proxy!");
  });
  auto other = store_at(broken.url());
  CHECK(holds(failure_of([&] { other.list("a/", store::Depth::one); }).what(), "cannot list"));
}

TEST_CASE("objects are removed by their names, whatever these hold") {
  const ScriptedServer server(
      [](std::size_t, const auto&) { return ScriptedServer::answer(200, "<DeleteResult/>"); });
  auto store = store_at(server.url());
  store.remove({"a/b&c", "<ü>\"'"});
  REQUIRE(server.requests().size() == 1);
  CHECK(server.requests()[0].body ==
        "<Delete><Quiet>true</Quiet><Object><Key>a/b&amp;c</Key></Object>"
        "<Object><Key>&lt;ü&gt;\"'</Key></Object></Delete>");
}

TEST_CASE("buckets and endpoints that cannot be are refused") {
  const auto refused = [](const std::string& bucket, const std::string& endpoint) {
    try {
      const store::S3Store store(bucket, base::Environment({{"AWS_ENDPOINT_URL", endpoint},
                                                            {"AWS_ACCESS_KEY_ID", "id"},
                                                            {"AWS_SECRET_ACCESS_KEY", "hidden"}}));
    } catch (const base::Error& failed) {
      return failed.code() == base::ExitCode::usage ? std::string(failed.what()) : std::string();
    }
    return std::string();
  };
  CHECK(holds(refused("Upper", "http://h"), "names no bucket"));
  CHECK(holds(refused("", "http://h"), "names no bucket"));
  CHECK(holds(refused("bucket", "ftp://h"), "AWS_ENDPOINT_URL_S3 is 'ftp://h'"));
  CHECK(holds(refused("bucket", "http://user@h"), "write it like that"));
  CHECK(refused("bucket", "https://h:9000/").empty());
}

TEST_CASE("URLs of stores are told from paths") {
  CHECK(store::is_url("s3://bucket/a"));
  CHECK(store::is_url("webhdfs://host:9870/a"));
  CHECK_FALSE(store::is_url("s3:/bucket"));
  CHECK_FALSE(store::is_url("/s3://bucket"));
  CHECK_FALSE(store::is_url("runs/a"));
  CHECK((std::filesystem::path("s3://bucket/a") / "b").native() == "s3://bucket/a/b");
  CHECK(std::filesystem::path("s3://bucket/a/b").parent_path() == "s3://bucket/a");
}
