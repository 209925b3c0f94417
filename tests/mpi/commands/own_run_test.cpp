// SPDX-License-Identifier: Apache-2.0
// The belongings of a run directory: used from any folder, after everything that it was made of is
// gone.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/config/config.hpp"
#include "trireme/huggingface/safetensors.hpp"

#include "mpi/commands/ranks.hpp"
#include "mpi/commands/text_model.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace trireme;
using namespace trireme::tests;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  return base::value_or_throw(base::read_text_file(path));
}

base::Json json_of(const fs::path& path) {
  return base::value_or_throw(base::read_json_file(path));
}

std::vector<std::string> training(const TextModel& made, const fs::path& run) {
  return with_settings({"-q", "train"},
                       {"run.directory=" + run.string(), "data.train=" + made.tokens.string(),
                        "data.validation=" + made.tokens.string(), "train.sequence_length=16",
                        "train.global_batch=4", "train.steps=2", "numerics.threads=1"});
}

}  // namespace

TEST_CASE("an imported run is trained, evaluated, asked and exported without its folder") {
  const TemporaryFolder folder;
  const auto made = make_text_model(folder.path());
  base::write_file_durably(made.model / "chat_template.jinja", "{{ messages }}");
  base::write_file_durably(made.model / "generation_config.json", "{\"eos_token_id\": 7}");
  const auto run = folder.path() / "run";
  done_on_ranks(2, {"checkpoint", "import", made.model.string(), "--to", run.string()});
  fs::rename(made.model, folder.path() / "gone");

  const auto checked =
      on_ranks(1, with_settings({"config", "check"}, {"run.directory=" + run.string()}));
  CHECK_FALSE(says(checked.out + checked.err, "neither model.architecture"));
  done_on_ranks(2, with_settings(training(made, run), {"parallel.tensor=2"}));
  const auto shown = done_on_ranks(1, {"-q", "eval", "--weights", run.string()});
  CHECK(says(shown, "sequences of 16"));
  CHECK(says(shown, "bytes of text"));
  CHECK_FALSE(says(shown, "not known"));
  done_on_ranks(1,
                {"generate", "--weights", run.string(), "--prompt", "line", "--max-tokens", "4"});
  const auto exported = folder.path() / "exported";
  done_on_ranks(1, {"checkpoint", "export", run.string(), "--to", exported.string()});
  CHECK(text_of(exported / "tokenizer.json") == text_of(folder.path() / "gone/tokenizer.json"));
  CHECK(text_of(exported / "chat_template.jinja") == "{{ messages }}");
  CHECK(json_of(exported / "generation_config.json")["eos_token_id"] == 7);
}

TEST_CASE("a run that was trained with a tokenizer keeps it") {
  const TemporaryFolder folder;
  const auto made = make_text_model(folder.path());
  const auto run = folder.path() / "run";
  const auto tokenizer = folder.path() / "tokenizer.json";
  fs::copy_file(made.model / "tokenizer.json", tokenizer);
  auto all = with_settings(training(made, run), {"model.from=" + made.model.string(),
                                                 "data.tokenizer=" + tokenizer.string()});
  done_on_ranks(1, all);
  CHECK(text_of(run / "tokenizer.json") == text_of(tokenizer));
  fs::rename(tokenizer, folder.path() / "gone.json");
  fs::rename(made.model, folder.path() / "gone");

  // The configuration still names both; the run has its own.
  done_on_ranks(2, with_settings(training(made, run),
                                 {"data.tokenizer=" + tokenizer.string(), "train.steps=3"}));
  const auto exported = folder.path() / "exported";
  done_on_ranks(1, {"checkpoint", "export", (run / "checkpoints/step-000000003").string(), "--to",
                    exported.string(), "--dtype", "bf16"});
  const auto settings = json_of(exported / "tokenizer_config.json");
  CHECK(settings["eos_token"] == "<|endoftext|>");
  CHECK(settings["model_max_length"] == 32);
  CHECK(json_of(exported / "generation_config.json")["eos_token_id"] == 0);
  CHECK(json_of(exported / "config.json")["dtype"] == "bfloat16");
  CHECK(json_of(exported / "config.json")["eos_token_id"] == 0);
  const auto weights = base::value_or_throw(huggingface::SafetensorsFolder::open(exported));
  for (const auto& entry : weights.tensors()) {
    CHECK(entry.dtype == huggingface::SafetensorsType::bf16);
  }

  // Another tokenizer is refused; the same one, written differently, is not.
  const auto other = make_text_model(folder.path() / "other", 290);
  const auto end =
      on_ranks(1, with_settings(training(made, run),
                                {"data.tokenizer=" + (other.model / "tokenizer.json").string()}));
  CHECK(end.exit_code == 2);
  CHECK(says(end.err, "is not the tokenizer that the run"));
  CHECK(text_of(run / "tokenizer.json") == text_of(folder.path() / "gone.json"));
  const auto same = folder.path() / "same.json";
  base::write_file_durably(same, json_of(run / "tokenizer.json").dump(3));
  done_on_ranks(
      1, with_settings(training(made, run), {"data.tokenizer=" + same.string(), "train.steps=4"}));
}

TEST_CASE("an export without a tokenizer has to be asked for") {
  const TemporaryFolder folder;
  const auto run = (folder.path() / "run").string();
  const auto exported = folder.path() / "exported";
  done_on_ranks(1, {"checkpoint", "import", golden_model("gpt2-tied").string(), "--to", run});
  const auto refused = on_ranks(1, {"checkpoint", "export", run, "--to", exported.string()});
  CHECK(refused.exit_code == 6);
  CHECK(says(refused.err, "no tokenizer belongs to"));
  CHECK(says(refused.err, "--without-tokenizer"));
  CHECK_FALSE(fs::exists(exported));
  done_on_ranks(1, {"checkpoint", "export", run, "--to", exported.string(), "--without-tokenizer"});
  CHECK(fs::exists(exported / "model.safetensors"));
  const auto dtype =
      on_ranks(1, {"checkpoint", "export", run, "--to", exported.string(), "--dtype", "int4"});
  CHECK(dtype.exit_code == 2);
  CHECK(says(dtype.err, "use fp32 or bf16"));
}

TEST_CASE("the resolved configuration holds values, and gives the same run again") {
  const TemporaryFolder folder;
  for (const std::string name : {"gpt2-tied", "llama-grouped-scaled", "qwen3-wide-heads"}) {
    CAPTURE(name);
    const auto tokens = folder.path() / (name + "-tokens");
    write_tokens(tokens, made_up_tokens(600, 40));
    const auto run = folder.path() / name;
    const auto model = folder.path() / (name + "-model");
    fs::create_directories(model);
    fs::copy_file(golden_model(name) / "config.json", model / "config.json");
    done_on_ranks(
        2, with_settings({"-q", "train"},
                         {"run.directory=" + run.string(), "model.from=" + model.string(),
                          "data.train=" + fs::relative(tokens).string() + ":2",
                          "train.sequence_length=8", "train.steps=2", "numerics.threads=1"}));
    fs::remove_all(model);
    const auto resolved = base::value_or_throw(config::Config::resolve(
        {.files = {run / "config.resolved.conf"}, .environment = {}, .settings = {}}));
    CHECK(resolved.options().model.num_hidden_layers == 2);
    CHECK(resolved.options().parallel.data == 2);
    CHECK(resolved.options().train.global_batch == 2);
    CHECK(resolved.options().model.from.empty());
    CHECK(resolved.options().data.train ==
          std::vector<schema::WeightedText>{{fs::absolute(tokens).lexically_normal().string(), 2}});
    for (const auto& key : schema::keys()) {
      if (key.section != "model" || key.name.starts_with("rope_") || key.name.ends_with("_eps")) {
        continue;
      }
      INFO(key.full_name());
      CHECK_FALSE(resolved.automatic(key.full_name()));
    }
    const auto again = folder.path() / (name + "-again");
    done_on_ranks(2, with_settings({"-q", "train", (run / "config.resolved.conf").string()},
                                   {"run.directory=" + again.string()}));
    CHECK(json_of(again / "model.json") == json_of(run / "model.json"));
    const auto first = metrics(run, "train");
    const auto second = metrics(again, "train");
    REQUIRE(first.size() == second.size());
    for (std::size_t step = 0; step < first.size(); ++step) {
      CHECK(first[step]["loss"] == second[step]["loss"]);
    }
  }
}

TEST_CASE("eval of a run is as its training evaluated") {
  const TemporaryFolder folder;
  const auto made = make_text_model(folder.path());
  const auto run = folder.path() / "run";
  done_on_ranks(1, with_settings(training(made, run),
                                 {"model.from=" + made.model.string(), "numerics.precision=bf16",
                                  "train.eval_every=2", "train.eval_batches=0"}));
  const auto expected = metrics(run, "eval").back();
  const auto shown = done_on_ranks(1, {"-q", "eval", "--json", "--weights", run.string()});
  const auto found = base::value_or_throw(base::parse_json(shown, "stdout"));
  CHECK(found["sequence_length"] == 16);
  CHECK(found["tokens"] == expected["tokens"]);
  CHECK(found["loss"].get<double>() == Approx(expected["loss"].get<double>()).epsilon(1e-6));
  const auto longer = done_on_ranks(
      1, {"-q", "eval", "--json", "--weights", run.string(), "--set", "train.sequence_length=32"});
  CHECK(base::value_or_throw(base::parse_json(longer, "stdout"))["sequence_length"] == 32);
}

TEST_CASE("no model goes beyond its positions unless it is given more") {
  const TemporaryFolder folder;
  const auto made = make_text_model(folder.path());
  const auto model = made.model.string();
  const auto data = made.tokens.string();
  const std::vector<std::vector<std::string>> commands{
      {"eval", "--weights", model, "--data", data, "--set", "train.sequence_length=33"},
      {"generate", "--weights", model, "--prompt", "line", "--max-tokens", "40"},
      {"train", "--set", "model.from=" + model, "--set", "data.train=" + data, "--set",
       "train.sequence_length=33", "--set", "train.steps=1", "--set",
       "run.directory=" + (folder.path() / "long").string()}};
  for (auto command : commands) {
    CAPTURE(command);
    const auto refused = on_ranks(1, command);
    CHECK(refused.exit_code == 2);
    CHECK(says(refused.err, "exceeds model.max_position_embeddings = 32"));
    command.insert(command.end(), {"--set", "model.max_position_embeddings=64"});
    done_on_ranks(1, command);
  }
  // Without a word on lengths, answers end where positions do, though 128 tokens are usual.
  done_on_ranks(1, {"generate", "--weights", model, "--prompt", "line"});
  // Without a word on lengths, weights are evaluated at their own.
  const auto shown = done_on_ranks(1, {"-q", "eval", "--json", "--weights", model, "--data", data});
  CHECK(base::value_or_throw(base::parse_json(shown, "stdout"))["sequence_length"] == 32);
}

TEST_CASE(
    "eval, generate and export use no weights without the signature that they are asked for") {
  const TemporaryFolder folder;
  const auto made = make_text_model(folder.path());
  const auto run = folder.path() / "run";
  const auto key_in = [&](const char* name, char value) {
    const auto file = folder.path() / name;
    base::write_file_durably(file, std::string(32, value));
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    return file.string();
  };
  const auto own = key_in("own", 'k');
  const auto other = key_in("other", 'x');
  const auto tokenizer = (made.model / "tokenizer.json").string();
  done_on_ranks(1, with_settings(training(made, run),
                                 {"model.from=" + made.model.string(),
                                  "data.tokenizer=" + tokenizer, "checkpoint.key_file=" + own}));
  const std::vector<std::string> eval{"-q", "eval", "--weights", run.string()};
  const std::vector<std::string> generate{"generate", "--weights",    run.string(), "--prompt",
                                          "line",     "--max-tokens", "2"};
  const std::vector<std::string> exported{"checkpoint", "export", run.string(), "--to",
                                          (folder.path() / "exported").string()};
  for (const auto& command : {eval, generate}) {
    done_on_ranks(2, with_settings(command, {"checkpoint.key_file=" + own}));
    const auto refused = on_ranks(2, with_settings(command, {"checkpoint.key_file=" + other}));
    CHECK(refused.exit_code == 6);
    CHECK(says(refused.err, "signed with another key"));
  }
  const auto with_key = [&](const std::string& key) {
    auto all = exported;
    all.insert(all.end(), {"--key-file", key});
    return all;
  };
  const auto refused = on_ranks(1, with_key(other));
  CHECK(refused.exit_code == 6);
  CHECK(says(refused.err, "signed with another key"));
  CHECK_FALSE(fs::exists(folder.path() / "exported"));
  done_on_ranks(1, with_key(own));
}
