// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/job_comment.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace std::chrono_literals;

TEST_CASE("a job's comment is plain, short and marked as ours") {
  CHECK(runtime::comment_value("step 3/9, loss 1.5") == "trireme: step 3/9, loss 1.5");
  CHECK(runtime::comment_value("a\n'b'\"\x80") == "trireme: a??b???");
  CHECK(runtime::comment_value(std::string(5000, 'x')).size() == 209);
}

TEST_CASE("outside of a job a comment is nobody's") {
  runtime::JobComment comment(base::Environment{}, 1s);
  comment.offer("step 1");
}
