// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/retention.hpp"

#include "trireme/checkpoint/state_names.hpp"

#include "unit/checkpoint/small_steps.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;
using checkpoint::Retag;
using Steps = std::vector<std::int64_t>;

namespace {

std::vector<std::string> tag_texts(const std::filesystem::path& checkpoints) {
  std::vector<std::string> texts;
  for (const auto& tag : checkpoint::tags(checkpoints)) {
    texts.push_back(tag.name + " " + std::to_string(tag.step));
  }
  return texts;
}

/// Another process tags each step at the moment at which it is renamed.
class TaggingFileSystem : public checkpoint::FileSystem {
 public:
  enum class When { before, after };
  explicit TaggingFileSystem(When when) : when_(when) {}

  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    const checkpoint::StepFolder step{from, 1};
    if (when_ == When::before) tagged = checkpoint::add_tag(step, "kept").ok();
    const int result = FileSystem::rename(from, to);
    if (when_ == When::after) tagged = checkpoint::add_tag(step, "kept").ok();
    return result;
  }

  bool tagged = false;

 private:
  When when_;
};

}  // namespace

TEST_CASE("pruning keeps at least one good step, and damaged ones newer than those kept") {
  const ScratchFolder scratch;
  for (const std::int64_t step : {1, 2, 3, 4, 5}) save_small(scratch.path(), step);
  std::filesystem::remove(scratch.path() / "step-000000005" / "manifest.json");
  std::filesystem::remove(scratch.path() / "step-000000002" / "manifest.json");
  CHECK(checkpoint::prune(scratch.path(), {.keep_last = 2}).size() == 2);
  CHECK(steps_in(scratch.path()) == std::vector<std::int64_t>{5, 4, 3});
  checkpoint::prune(scratch.path(), {.keep_last = 0});
  CHECK(steps_in(scratch.path()) == std::vector<std::int64_t>{5, 4});
  std::filesystem::remove(scratch.path() / "step-000000004" / "manifest.json");
  CHECK(checkpoint::prune(scratch.path(), {.keep_last = 1}).empty());
}

TEST_CASE("pruning never takes the step that was just saved or loaded") {
  const ScratchFolder scratch;
  // Step 900 looks well but could not be loaded: the run went back to 100.
  for (const std::int64_t step : {99, 100, 900}) save_small(scratch.path(), step);
  checkpoint::prune(scratch.path(), {.keep_last = 1}, 100);
  CHECK(steps_in(scratch.path()) == std::vector<std::int64_t>{900, 100});
  save_small(scratch.path(), 101);
  checkpoint::prune(scratch.path(), {.keep_last = 2}, 101);
  CHECK(steps_in(scratch.path()) == std::vector<std::int64_t>{900, 101, 100});
  checkpoint::prune(scratch.path(), {.keep_last = 1}, 101);
  CHECK(steps_in(scratch.path()) == std::vector<std::int64_t>{900, 101});
}

TEST_CASE("beside the newest stay multiples, the best, the tagged and the one loaded from") {
  const ScratchFolder scratch;
  const auto save = [&](std::int64_t step, base::Json loss) {
    base::Json state;
    if (!loss.is_null()) state[checkpoint::validation_loss_name] = std::move(loss);
    return save_small(scratch.path(), step, 0, std::move(state));
  };
  save(1, 3.5);
  save(2, {});
  save(3, 1.25);
  const auto fourth = save(4, "low");
  save(5, 1.5);
  save(6, 1.25);
  save(7, 9.0);
  save(8, {});
  REQUIRE(checkpoint::add_tag(fourth, "look-at-it").ok());
  const checkpoint::Retention retention{
      .keep_last = 1, .keep_every = 5, .keep_best = 1, .loaded = 2};
  const auto doomed = checkpoint::steps_to_prune(scratch.path(), retention);
  Steps steps;
  for (const auto& step : doomed) steps.push_back(step.step);
  // The newer of two that are as good stays.
  CHECK(steps == Steps{7, 3, 1});
  CHECK(steps_in(scratch.path()).size() == 8);
  CHECK(checkpoint::prune(scratch.path(), retention).size() == 3);
  CHECK(steps_in(scratch.path()) == Steps{8, 6, 5, 4, 2});
  CHECK(checkpoint::prune(scratch.path(), {.keep_last = 1, .keep_best = 2}).size() == 1);
  CHECK(steps_in(scratch.path()) == Steps{8, 6, 5, 4});
}

TEST_CASE("a step that somebody reads stays until he has read it") {
  const ScratchFolder scratch;
  for (const std::int64_t step : {1, 2, 3}) save_small(scratch.path(), step);
  const auto step_path = scratch.path() / "step-000000001";
  {
    const auto read = base::value_or_throw(checkpoint::find_step(step_path));
    const auto also = base::value_or_throw(checkpoint::find_step(step_path));
    CHECK(checkpoint::prune(scratch.path(), {.keep_last = 1}).size() == 1);
    CHECK(steps_in(scratch.path()) == Steps{3, 1});
    CHECK(checkpoint::verify(read.path, checkpoint::VerifyLevel::full).good());
  }
  CHECK(checkpoint::prune(scratch.path(), {.keep_last = 1}).size() == 1);
  CHECK(steps_in(scratch.path()) == Steps{3});
}

TEST_CASE("a tag is a path of its step, belongs to one, and moves only when told") {
  const ScratchFolder scratch;
  const auto first = save_small(scratch.path(), 1);
  const auto second = save_small(scratch.path(), 2);
  CHECK(tag_texts(scratch.path()).empty());
  REQUIRE(checkpoint::add_tag(first, "good").ok());
  CHECK(checkpoint::add_tag(first, "good").ok());
  CHECK(checkpoint::find_step(scratch.path() / "tags" / "good")->step == 1);
  const auto taken = checkpoint::add_tag(second, "good");
  REQUIRE_FALSE(taken.ok());
  CHECK_THAT(taken.failure().text, Catch::Contains("step 1") && Catch::Contains("--move"));
  CHECK(checkpoint::add_tag(second, "good", Retag::move).ok());
  CHECK(checkpoint::add_tag(first, "v1.0_x").ok());
  CHECK(tag_texts(scratch.path()) == std::vector<std::string>{"good 2", "v1.0_x 1"});
  const auto missing = checkpoint::remove_tag(scratch.path(), "god");
  REQUIRE_FALSE(missing.ok());
  CHECK_THAT(missing.failure().text, Catch::Contains("did you mean 'good'"));
  CHECK(checkpoint::remove_tag(scratch.path(), "good").ok());
  CHECK(tag_texts(scratch.path()) == std::vector<std::string>{"v1.0_x 1"});
  // Nothing beside the links is left.
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path() / "tags"), {}) == 1);
}

TEST_CASE("names that could lead elsewhere are no tags, and foreign links are not followed") {
  const ScratchFolder scratch;
  const auto step = save_small(scratch.path(), 1);
  const std::vector<std::string> names{
      "",    ".",        "..",        ".hidden",           "-f", "a/b", "../x",
      "a b", "\xC3\xA4", "new\nline", std::string(65, 'x')};
  for (const auto& name : names) {
    INFO(name);
    const auto status = checkpoint::add_tag(step, name);
    REQUIRE_FALSE(status.ok());
    CHECK(status.failure().code == base::ExitCode::usage);
    CHECK_FALSE(checkpoint::remove_tag(scratch.path(), name).ok());
  }
  const auto folder = scratch.path() / "tags";
  std::filesystem::create_directory(folder);
  std::filesystem::create_directory_symlink("/tmp", folder / "elsewhere");
  std::filesystem::create_directory_symlink("../../step-000000001", folder / "above");
  std::filesystem::create_directory_symlink("../step-000000001.tmp-x", folder / "temporary");
  CHECK(tag_texts(scratch.path()).empty());
  CHECK_FALSE(checkpoint::remove_tag(scratch.path(), "elsewhere").ok());
  const auto taken = checkpoint::add_tag(step, "elsewhere");
  CHECK_FALSE(taken.ok());
}

TEST_CASE("a step that gets a tag while it is removed stays, or is refused the tag") {
  const auto when = GENERATE(TaggingFileSystem::When::before, TaggingFileSystem::When::after);
  const ScratchFolder scratch;
  save_small(scratch.path(), 1);
  save_small(scratch.path(), 2);
  TaggingFileSystem files(when);
  const auto removed = checkpoint::prune(scratch.path(), {.keep_last = 1}, {}, files);
  CHECK(files.tagged == (when == TaggingFileSystem::When::before));
  CHECK(removed.empty() == files.tagged);
  CHECK(steps_in(scratch.path()) == (files.tagged ? Steps{2, 1} : Steps{2}));
  CHECK(tag_texts(scratch.path()).size() == (files.tagged ? 1 : 0));
}
