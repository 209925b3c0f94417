// SPDX-License-Identifier: Apache-2.0
#include "track/sinks/wire.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/track/target.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using track::Message;

TEST_CASE("messages are in the wire format of Protocol Buffers") {
  // protobuf.dev/programming-guides/encoding: 150 in field 1, "testing" in field 2.
  CHECK(Message().number(1, 150).bytes() == "\x08\x96\x01");
  CHECK(Message().text(2, "testing").bytes() == "\x12\x07testing");
  CHECK(Message().message(3, Message().number(1, 150)).bytes() == "\x1a\x03\x08\x96\x01");
  CHECK(Message().number(16, 0).bytes() == std::string("\x80\x01\x00", 3));
  CHECK(Message().real(1, 1.0).bytes() == std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9));
  CHECK(Message().single(2, 1.0F).bytes() == std::string("\x15\0\0\x80\x3f", 5));
}

TEST_CASE("what stands behind the noted bytes is cut off, and a file that is shorter is refused") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "new/file";
  const auto text = [&path] { return base::value_or_throw(base::read_text_file(path)); };
  CHECK(track::append_behind(path, 0, "one") == 3);
  CHECK(track::append_behind(path, 3, "two and half of th") == 21);
  CHECK(track::append_behind(path, 6, "three") == 11);
  CHECK(text() == "onetwothree");
  CHECK(track::append_behind(path, 0, "anew") == 4);
  CHECK(text() == "anew");
  CHECK_THROWS_AS(track::append_behind(path, 5, "more"), base::Error);
  CHECK(text() == "anew");
}

TEST_CASE("targets are a tracker and its place") {
  const auto target = base::value_or_throw(track::parse_target("mlflow=http://host:5000/"));
  CHECK(target.kind == track::Kind::mlflow);
  CHECK(target.place == "http://host:5000");
  CHECK(target.text() == "mlflow=http://host:5000");
  const auto file = base::value_or_throw(track::parse_target("tensorboard=logs"));
  CHECK(file.place == (std::filesystem::current_path() / "logs").string());
  for (const auto* wrong : {"", "=", "tensorboard", "tensorboard=", "mlflow=host", "mlflow=http://",
                            "csv=here", "otlp=ftp://host"}) {
    CAPTURE(wrong);
    CHECK_FALSE(track::parse_target(wrong).ok());
  }
  CHECK(track::parse_target("wanb=x").failure().text.find("did you mean 'wandb'") !=
        std::string::npos);
}
