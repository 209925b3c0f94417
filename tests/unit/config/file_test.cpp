// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/config/config.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using trireme::config::Config;
using trireme::tests::TemporaryFolder;
namespace base = trireme::base;

namespace {

base::Result<Config> load(const std::filesystem::path& path) {
  return Config::resolve({.files = {path}, .environment = {}, .settings = {}});
}

std::string failure_of(const std::filesystem::path& path) {
  const auto config = load(path);
  REQUIRE_FALSE(config.ok());
  return config.failure().text;
}

}  // namespace

TEST_CASE("a file has sections, full names, comments, blanks and any line ends") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf",
                                 "\xEF\xBB\xBF# comment\r\n"
                                 "run.name=first   # a name\r\n"
                                 "\r\n"
                                 "[train]\r\n"
                                 "  steps = 7\r\n"
                                 "\tseed\t=\t9\n"
                                 "[model.rope_scaling]\n"
                                 "rope_type = default\n"
                                 "[ optimizer ]\n"
                                 "[optimizer]\n"
                                 "name = sgd");
  const auto config = load(path);
  REQUIRE(config.ok());
  CHECK(config->options().run.name == "first");
  CHECK(config->origin("run.name").text() == path.string() + ":2");
  CHECK(config->options().train.steps == 7);
  CHECK(config->origin("train.steps").text() == path.string() + ":5");
  CHECK(config->options().train.seed == 9);
  CHECK(config->shown("model.rope_scaling.rope_type") == "default");
  CHECK(config->shown("optimizer.name") == "sgd");
  CHECK(config->origin("optimizer.name").line == 11);
}

TEST_CASE("an include is read where it stands, relative to the file that names it") {
  const TemporaryFolder folder;
  const auto inner = folder.write("parts/inner.conf", "[train]\nsteps = 1\nseed = 1\n");
  folder.write("parts/outer.conf", "include = inner.conf\ntrain.seed = 2\n");
  const auto path = folder.write("a.conf",
                                 "[run]\n"
                                 "name = x\n"
                                 "include = parts/outer.conf\n"
                                 "tags = a, b\n");
  const auto config = load(path);
  REQUIRE(config.ok());
  CHECK(config->options().train.steps == 1);
  CHECK(config->origin("train.steps").text() == inner.string() + ":2");
  CHECK(config->options().train.seed == 2);
  CHECK(config->options().run.tags == std::vector<std::string>{"a", "b"});  // still [run]
}

TEST_CASE("a key may be set before and after an include: the later line wins") {
  const TemporaryFolder folder;
  folder.write("inner.conf", "train.steps = 2\n");
  CHECK(load(folder.write("a.conf", "train.steps = 1\ninclude = inner.conf\n"))
            ->options()
            .train.steps == 2);
  CHECK(load(folder.write("b.conf", "include = inner.conf\ntrain.steps = 1\n"))
            ->options()
            .train.steps == 1);
}

TEST_CASE("one file may be included twice but not by itself") {
  const TemporaryFolder folder;
  folder.write("leaf.conf", "train.steps = 2\n");
  folder.write("left.conf", "include = leaf.conf\n");
  CHECK(load(folder.write("top.conf", "include = leaf.conf\ninclude = left.conf\n")).ok());
  folder.write("b.conf", "include = ./a.conf\n");
  const auto path = folder.write("a.conf", "include = b.conf\n");
  const auto text = failure_of(path);
  CHECK(text.find((folder.path() / "b.conf").string() + ":1: ") == 0);
  CHECK(text.find("includes itself") != std::string::npos);
}

TEST_CASE("includes are limited in depth and number") {
  const TemporaryFolder folder;
  for (int depth = 0; depth < 40; ++depth) {
    folder.write(base::format("{}.conf", depth), base::format("include = {}.conf\n", depth + 1));
  }
  CHECK(failure_of(folder.path() / "0.conf").find("too deep or too often") != std::string::npos);
  folder.write("leaf.conf", "");
  std::string many;
  for (int count = 0; count < 300; ++count) many += "include = leaf.conf\n";
  CHECK(failure_of(folder.write("many.conf", many)).find("too deep or too often") !=
        std::string::npos);
}

TEST_CASE("every mistake of a file is named with its line, in one go") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf",
                                 "[train]\n"
                                 "stesp = 5\n"
                                 "micro_batch = 0\n"
                                 "nonsense\n"
                                 "seed = 1\n"
                                 "seed = 2\n"
                                 "[]\n"
                                 "include =\n"
                                 "include = absent.conf\n");
  const auto at = [&path](int line) { return path.string() + ":" + std::to_string(line) + ": "; };
  const auto text = failure_of(path);
  CHECK(text ==
        at(4) +
            "nonsense is neither 'key = value' nor '[section]' nor a comment (nothing else can "
            "stand in a configuration file); correct the line\n" +
            at(6) +
            "train.seed is set for the second time (the first is line 5, and one of the two would "
            "be ignored); remove one\n" +
            at(7) + "'[]' names no section; write [section]\n" + at(8) +
            "include names no file; write include = other.conf\n" + at(9) + "cannot open '" +
            (folder.path() / "absent.conf").string() +
            "': No such file or directory (a configuration file must be readable); check the "
            "path\n" +
            at(2) +
            "there is no key 'train.stesp' (nothing would read it); did you mean 'train.steps'?\n" +
            at(3) +
            "train.micro_batch = 0 is too small (sequences of one forward on one data-parallel "
            "rank); give 1 or more sequences, or auto");
}

TEST_CASE("files that are no text, too long or too large are refused quickly") {
  const TemporaryFolder folder;
  CHECK(failure_of(folder.write("nul.conf", std::string_view("run.name = a\0b\n", 15)))
            .find("nul.conf has a NUL at byte 12 (configuration files are text in UTF-8, a value a "
                  "line); check the path, or save it as UTF-8") != std::string::npos);
  CHECK(failure_of(folder.write("wide.conf", std::string_view("\xFF\xFE[\0", 4)))
            .find("wide.conf is UTF-16 (configuration files are text in UTF-8, a value a line); "
                  "check the path, or convert it: iconv -f UTF-16 -t UTF-8") != std::string::npos);
  CHECK(failure_of(folder.write("bell.conf", "run.name = a\ab\n"))
            .find(":1: 'run.name = a\\x07b' is not text") != std::string::npos);
  CHECK(failure_of(folder.write("large.conf", std::string(std::size_t{2} << 20, '#')))
            .find("larger than 1.00 MiB") != std::string::npos);
  CHECK(failure_of(folder.write("long.conf", std::string(30'000, '\n'))).find("more than 20000") !=
        std::string::npos);
  CHECK(failure_of(folder.path()).find("is a folder") != std::string::npos);
  CHECK(failure_of("/dev/zero").find("larger than") != std::string::npos);
}

TEST_CASE("a text in quotes comes as it is, and what could be a comment is asked about") {
  using Catch::Contains;
  const TemporaryFolder folder;
  const auto config = load(folder.write("a.conf",
                                        "[run]\n"
                                        "name = \"a#b \\\"c\\\" \\\\ \\xe9 \"   # a comment\n"
                                        "tags = \"x, y\", z # \"c\"\n"
                                        "[data]\n"
                                        "train = \"o#1:2\", \"p,q\":0.5, r:2 # c\n"
                                        "validation = gr\xF6\xDF\n"));
  REQUIRE(config.ok());
  CHECK(config->options().run.name == "a#b \"c\" \\ \xe9 ");
  CHECK(config->options().run.tags == std::vector<std::string>{"x, y", "z"});
  using Entries = std::vector<trireme::schema::WeightedText>;
  CHECK(config->options().data.train == Entries{{"o#1:2", 1}, {"p,q", 0.5}, {"r", 2}});
  CHECK(config->options().data.validation == Entries{{"gr\xF6\xDF", 1}});
  folder.write("i#1.conf", "train.steps = 3\n");
  CHECK(load(folder.write("b.conf", "include = \"i#1.conf\"\n"))->options().train.steps == 3);

  const auto failure = [&](const char* line) { return failure_of(folder.write("c.conf", line)); };
  CHECK_THAT(failure("run.name = a#b"), Contains("c.conf:1: ") && Contains("run.name = \"a#b\"") &&
                                            Contains("begin a comment"));
  CHECK_THAT(failure("train.steps = 7# seven"), Contains("'#' right behind its value"));
  CHECK_THAT(failure("run.name = \"a # b"), Contains("quotes that do not end"));
  CHECK_THAT(failure("run.name = \"a\" b"), Contains("goes on behind its quotes"));
  CHECK_THAT(failure("run.name = \"a\\n\""), Contains("has '\\n' in its quotes"));
  CHECK_THAT(failure("run.name = \"a\\x0a\""), Contains("holds a control character"));
  CHECK_THAT(failure("run.tags = \"\""), Contains("empty entry"));
  CHECK(load(folder.write("d.conf", "run.name = a \"b\" \n[run]# c\ntags=# c\n"))
            ->options()
            .run.name == "a \"b\"");
}

TEST_CASE("random bytes never crash the reader") {
  const TemporaryFolder folder;
  // The letters that mean something come often, so that the parser is reached.
  constexpr std::string_view letters = "[]=#.\n\r\t \\\"'\0\xFF\xC3\xA9,:-+09aetrainstepsinclude";
  for (std::uint64_t file = 0; file < 300; ++file) {
    std::string text;
    const auto length = base::philox(3, file, 0)[0] % 400;
    for (std::uint64_t at = 0; at < length; ++at) {
      const auto bits = base::philox(3, file, at + 1);
      text += bits[1] % 4 == 0 ? static_cast<char>(bits[0]) : letters[bits[0] % letters.size()];
    }
    const auto path = folder.write("random.conf", text);
    const auto config = load(path);
    if (!config) CHECK(config.failure().text.size() < 40'000);
  }
}

TEST_CASE("a section header that is not closed is one mistake, and its keys are judged in it") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf", "[train\nsteps = 5\nseed = 1\nstesp = 2\n");
  CHECK(failure_of(path) ==
        path.string() +
            ":1: [train is no section header (a name between two brackets); write [train]\n" +
            path.string() +
            ":4: there is no key 'train.stesp' (nothing would read it); did you mean "
            "'train.steps'?");
}

TEST_CASE("YAML and JSON are told once, not by each of their lines") {
  const TemporaryFolder folder;
  const std::string rule =
      " (a configuration file holds lines 'key = value' below lines '[section]'); write it so, as "
      "configs/*.conf do (trireme config reference lists the keys)";
  const auto yaml = folder.write("a.yaml", "# a comment\ntrain:\n  steps: 5\n  seed: 1\n");
  CHECK(failure_of(yaml) == yaml.string() + ":2: train: looks like YAML" + rule);
  const auto unnamed = folder.write("a.conf", "---\nsteps: 5\n");
  CHECK(failure_of(unnamed) == unnamed.string() + ":1: --- looks like YAML" + rule);
  const auto members = folder.write("b.conf", "train.steps: 5\ntrain.seed: 1\n");
  CHECK(failure_of(members) == members.string() + ":1: 'train.steps: 5' looks like YAML" + rule);
  const auto json = folder.write("c.conf", "{\n  \"train\": {\"steps\": 5}\n}\n");
  CHECK(failure_of(json) == json.string() + ":1: { looks like JSON" + rule);
}
