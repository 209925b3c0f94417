// SPDX-License-Identifier: Apache-2.0
#include "store/signature.hpp"

#include "trireme/base/format.hpp"
#include "trireme/web/http.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

namespace {

// The examples of AWS's documentation (sig-v4-header-based-auth): key, moment, bucket and
// signatures.
const store::Credentials example{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                 ""};
constexpr std::time_t moment = 1369353600;  // 2013-05-24, 00:00 UTC

std::string signature(store::SignedRequest request) {
  request.headers["host"] = "examplebucket.s3.amazonaws.com";
  store::sign(request, example, "us-east-1", moment);
  const auto& text = request.headers["authorization"];
  return text.substr(text.rfind('=') + 1);
}

}  // namespace

TEST_CASE("requests are signed as in the examples of AWS") {
  const auto nothing = base::sha256("");
  CHECK(signature({"GET", "/test.txt", {}, {{"range", "bytes=0-9"}}, nothing}) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  CHECK(signature({"PUT",
                   base::format("/{}", web::url_encoded("test$file.text", true)),
                   {},
                   {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                    {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                   base::sha256("Welcome to Amazon S3.")}) ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  CHECK(signature({"GET", "/", {{"lifecycle", ""}}, {}, nothing}) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(signature({"GET", "/", {{"max-keys", "2"}, {"prefix", "J"}}, {}, nothing}) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("a session's token is signed with the request") {
  store::SignedRequest request{"GET", "/", {}, {{"host", "h"}}, base::sha256("")};
  store::sign(request, {"id", "secret", "token"}, "eu-central-1", moment);
  CHECK(request.headers["x-amz-security-token"] == "token");
  CHECK(request.headers["authorization"].find(
            "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token") !=
        std::string::npos);
}

TEST_CASE("digests are those of the standards' examples") {
  CHECK(base::hexadecimal(base::sha256("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(base::md5_base64("abc") == "kAFQmDzST7DWlj99KOF/cg==");
  CHECK(base::equal_secrets("abc", "abc"));
  CHECK_FALSE(base::equal_secrets("abc", "abd"));
  CHECK_FALSE(base::equal_secrets("abc", "abcd"));
}
