// SPDX-License-Identifier: Apache-2.0
// The program's answer to each mistake: the whole text, because the text is the interface.
#include "trireme/config/checks.hpp"
#include "trireme/config/config.hpp"

#include <catch2/catch.hpp>

using trireme::config::Config;
namespace base = trireme::base;

namespace {

struct Mistake {
  std::vector<std::string> settings;
  std::string text;
};

void check(const std::vector<Mistake>& mistakes) {
  for (const auto& [settings, text] : mistakes) {
    const auto config = Config::resolve({.files = {}, .environment = {}, .settings = settings});
    INFO(settings.back());
    REQUIRE_FALSE(config.ok());
    CHECK(config.failure().code == base::ExitCode::usage);
    CHECK(config.failure().text == text);
  }
}

}  // namespace

TEST_CASE("mistakes of one value are named with source, key, value, rule and fix") {
  check({
      {{"train.step=5"},
       "--set train.step=5: there is no key 'train.step' (nothing would read it); did you mean "
       "'train.steps'?"},
      {{"colour=red"},
       "--set colour=red: there is no key 'colour' (nothing would read it); see trireme config "
       "reference"},
      {{"train.steps"},
       "--set train.steps: there is no '=' (a setting is section.key=value); write --set "
       "train.steps=VALUE"},
      {{"train.steps=abc"},
       "--set train.steps=abc: train.steps = abc is not a whole number (optimizer updates of the "
       "whole run); give 1 or more steps"},
      {{"train.steps="},
       "--set train.steps=: train.steps = '' is empty (optimizer updates of the whole run); give "
       "1 or more steps"},
      {{"parallel.tensor=0"},
       "--set parallel.tensor=0: parallel.tensor = 0 is too small (tensor-parallel degree); give "
       "1 or more, or auto"},
      {{"parallel.zero_level=4"},
       "--set parallel.zero_level=4: parallel.zero_level = 4 is too large (what data-parallel "
       "ranks divide among themselves); give 0 to 3, or auto"},
      {{"parallel.schedule=1f2b"},
       "--set parallel.schedule=1f2b: parallel.schedule = 1f2b is not a choice (order of forward "
       "and backward over the stages); give one of gpipe, 1f1b, interleaved, zb-h1, zb-h2, "
       "zb-v, or auto; did you mean '1f1b'?"},
      {{"train.profile=3..1"}, "train.profile = 3..1 (--set) ends before it begins; write 1..3"},
      {{"train.profile=1..101"},
       "train.profile = 1..101 (--set) is 101 steps (readers of traces hold all of them in "
       "memory); "
       "give at most 100"},
      {{"train.profile=0..3"},
       "train.profile = 0..3 (--set) is no range of steps (they count from 1); write the first and "
       "the "
       "last, such as 100..102"},
      {{"numerics.precision=fp16"},
       "--set numerics.precision=fp16: numerics.precision = fp16 is not a choice (precision of "
       "weights and activations in layers); give one of fp32, bf16, fp8; did you mean 'fp32'?"},
      {{"numerics.backend=gpu"},
       "--set numerics.backend=gpu: numerics.backend = gpu is not a choice (what runs the "
       "kernels); give one of auto, reference, cpu, cuda; did you mean 'cuda'?"},
      {{"numerics.precision=BFloat16"},
       "--set numerics.precision=BFloat16: numerics.precision = BFloat16 is not a choice "
       "(precision of weights and activations in layers); give one of fp32, bf16, fp8; did you "
       "mean 'bf16'?"},
      {{"parallel.sequence=maybe"},
       "--set parallel.sequence=maybe: parallel.sequence = maybe is neither true nor false "
       "(sequence parallel); give true or false, or auto"},
      {{"optimizer.learning_rate=nan"},
       "--set optimizer.learning_rate=nan: optimizer.learning_rate = nan is not a number "
       "(learning rate at its highest); give 0 or more"},
      {{"comm.timeout=soon"},
       "--set comm.timeout=soon: comm.timeout = soon is not a valid time (deadline of every wait "
       "for other ranks); give a time such as 90s, 2h or 1h30min"},
      {{"comm.timeout=0s"},
       "--set comm.timeout=0s: comm.timeout = 0s is too small (deadline of every wait for other "
       "ranks); give 0.1 to 604800 seconds"},
      {{"parallel.bucket_bytes=25M"},
       "--set parallel.bucket_bytes=25M: parallel.bucket_bytes = 25M is not a valid size (bucket "
       "of gradients); M may be a power of 1000 or of 1024: write 25MB or 25MiB"},
      {{"parallel.bucket_bytes=32GiB"},
       "--set parallel.bucket_bytes=32GiB: parallel.bucket_bytes = 32GiB is too large (bucket of "
       "gradients); give 4096 to 17179869184 bytes"},
      {{"parallel.stage_layers=4,,4"},
       "--set parallel.stage_layers=4,,4: parallel.stage_layers = 4,,4 has an empty entry (layers "
       "of each stage); separate entries by one comma, with none at the end"},
      {{"data.train=books:many"},
       "--set data.train=books:many: data.train = books:many is not an entry with a weight "
       "(prefixes of token files to train on); write NAME or NAME:WEIGHT with a weight above 0, "
       "such as books:0.7"},
  });
}

TEST_CASE("mistakes between keys cite both, with their sources and the nearest valid choices") {
  check({
      {{"train.micro_batch=4", "train.global_batch=10"},
       "train.global_batch = 10 (--set) is not a multiple of train.micro_batch = 4 (--set) (a "
       "step is whole micro-batches); try 8 or 12"},
      {{"train.micro_batch=4", "train.global_batch=2"},
       "train.global_batch = 2 (--set) is not a multiple of train.micro_batch = 4 (--set) (a "
       "step is whole micro-batches); try 4"},
      {{"parallel.data=3", "train.global_batch=8"},
       "train.global_batch = 8 (--set) is not a multiple of train.micro_batch = 1 (default) times "
       "parallel.data = 3 (--set) (each replica takes whole micro-batches); try 6 or 9"},
      {{"parallel.virtual_stages=2"},
       "parallel.virtual_stages = 2 (--set) does not go with parallel.schedule = 1f1b (default) "
       "(only schedules interleaved and zb-v give a stage more than one piece of the model); set "
       "parallel.schedule=interleaved or parallel.virtual_stages=1"},
      {{"parallel.pipeline=2", "parallel.schedule=interleaved"},
       "parallel.schedule = interleaved (--set) needs more than parallel.virtual_stages = 1 "
       "(default) (with one piece a stage there is nothing to interleave); set "
       "parallel.virtual_stages=2 or parallel.schedule=1f1b"},
      {{"parallel.virtual_stages=2", "parallel.schedule=interleaved"},
       "parallel.schedule = interleaved (--set) needs more than parallel.pipeline = 1 (default) "
       "(there is one stage); raise parallel.pipeline or set parallel.schedule=1f1b"},
      {{"parallel.pipeline=4", "parallel.virtual_stages=2", "parallel.schedule=interleaved",
        "parallel.data=1", "train.global_batch=6"},
       "train.global_batch = 6 (--set) gives each replica 6 micro-batches, not a multiple of "
       "parallel.pipeline = 4 (--set) (schedule interleaved hands them around in rounds of one a "
       "stage); try 4 or 8"},
      {{"parallel.pipeline=8", "model.num_hidden_layers=6"},
       "parallel.pipeline = 8 (--set) is more than model.num_hidden_layers = 6 (--set) (each stage "
       "holds at least one layer); try parallel.pipeline = 1, 2, 3, 6"},
      {{"parallel.pipeline=3", "parallel.stage_layers=4,4"},
       "parallel.stage_layers = 4, 4 (--set) has 2 entries, and the pipeline has 3 pieces "
       "(parallel.pipeline = 3 (--set), parallel.virtual_stages = 1 (default)); give one entry a "
       "piece"},
      {{"parallel.pipeline=2", "model.num_hidden_layers=9", "parallel.stage_layers=4,4"},
       "parallel.stage_layers = 4, 4 (--set) sums to 8, not to model.num_hidden_layers = 9 "
       "(--set) (each layer stands on one stage); try 5, 4"},
      {{"model.max_position_embeddings=512", "train.sequence_length=1024"},
       "train.sequence_length = 1024 (--set) is longer than model.max_position_embeddings = 512 "
       "(--set) (the model has no positions beyond); lower the first or raise the second"},
      {{"parallel.tensor=3", "parallel.sequence=true"},
       "train.micro_batch = 1 (default) times train.sequence_length = 1024 (default) is not a "
       "multiple of parallel.tensor = 3 (--set) (with parallel.sequence each rank holds an equal "
       "part of a micro-batch's tokens); change the first, or for the second try 1023 or 1026"},
      {{"optimizer.min_learning_rate=0.01"},
       "optimizer.min_learning_rate = 0.01 (--set) is above optimizer.learning_rate = 0.0003 "
       "(default) (the curve falls from the second to the first); lower the first"},
      {{"optimizer.decay_steps=6"},
       "optimizer.decay_steps = 6 (--set) does not go with optimizer.curve = cosine (default) "
       "(only curve wsd has a fall of its own length); set optimizer.curve=wsd or "
       "optimizer.decay_steps=auto"},
      {{"optimizer.name=soap", "optimizer.per_head=true"},
       "optimizer.per_head = true (--set) does not go with optimizer.name = soap (--set) (heads of "
       "q, k and v are matrices of their own to muon alone); set optimizer.name=muon or "
       "optimizer.per_head=false"},
      {{"optimizer.adamw_matrices=*.mlp.*"},
       "optimizer.adamw_matrices = *.mlp.* (--set) does not go with optimizer.name = adamw "
       "(default) (it updates all parameters alike); set optimizer.name to muon, shampoo or soap, "
       "or leave optimizer.adamw_matrices empty"},
      {{"model.rope_scaling.factor=8"},
       "model.rope_scaling.factor = 8 (--set) does not go with model.rope_scaling.rope_type = "
       "auto (default) (its formula has no place for it); set model.rope_scaling.rope_type=llama3 "
       "or remove it"},
      {{"model.rope_scaling.rope_type=linear"},
       "model.rope_scaling.rope_type = linear (--set) needs model.rope_scaling.factor (the formula "
       "has no default for it); give it"},
      {{"model.rope_scaling.rope_type=llama3", "model.rope_scaling.factor=8",
        "model.rope_scaling.low_freq_factor=4", "model.rope_scaling.high_freq_factor=1",
        "model.rope_scaling.original_max_position_embeddings=8192"},
       "model.rope_scaling.low_freq_factor = 4 (--set) is not below "
       "model.rope_scaling.high_freq_factor = 1 (--set) (wavelengths between the two are "
       "blended); swap them"},
      {{"comm.backend=nccl", "numerics.backend=cpu"},
       "comm.backend = nccl (--set) does not go with numerics.backend = cpu (--set) (it moves GPU "
       "memory); set comm.backend=auto"},
      {{"comm.backend=shared", "numerics.backend=cuda"},
       "comm.backend = shared (--set) does not go with numerics.backend = cuda (--set) (it moves "
       "host memory); set comm.backend=auto"},
      {{"train.eval_every=5"},
       "train.eval_every = 5 (--set) needs data.validation (there is nothing to evaluate on); "
       "give the prefix of held-out tokens, or set train.eval_every=0"},
      {{"checkpoint.local_directory=/dev/shm", "checkpoint.asynchronous=false"},
       "checkpoint.local_directory = /dev/shm (--set) needs checkpoint.asynchronous=true (nodes "
       "save while training goes on); set it, or leave the folder out"},
      {{"checkpoint.local_every_steps=5"},
       "checkpoint.local_every_steps = 5 (--set) needs checkpoint.local_directory (there is no "
       "place to save to); give a folder that each node has for itself, such as /dev/shm, or set "
       "checkpoint.local_every_steps=0"},
      {{"numerics.stochastic_rounding=true"},
       "numerics.stochastic_rounding = true (--set) does not go with numerics.precision = fp32 "
       "(default) (parameters are their own fp32 masters, and nothing is rounded); set "
       "numerics.precision=bf16 or fp8, or numerics.stochastic_rounding=false"},
  });
}

TEST_CASE("llama3 rope scaling without its numbers names each that is missing") {
  const auto config = Config::resolve(
      {.files = {}, .environment = {}, .settings = {"model.rope_scaling.rope_type=llama3"}});
  REQUIRE_FALSE(config.ok());
  CHECK(config.failure().text.find(
            "model.rope_scaling.rope_type = llama3 (--set) needs model.rope_scaling.factor (the "
            "formula has no default for it); give it\n") == 0);
  // Their folder's config.json may have them.
  CHECK(Config::resolve({.files = {},
                         .environment = {},
                         .settings = {"model.rope_scaling.rope_type=llama3", "model.from=x"}})
            .ok());
}

TEST_CASE("mistakes of the environment name the variable") {
  const auto failure = [](const std::string& name, const std::string& text) {
    std::map<std::string, std::string, std::less<>> variables{{name, text}};
    const auto config = Config::resolve(
        {.files = {}, .environment = base::Environment(std::move(variables)), .settings = {}});
    REQUIRE_FALSE(config.ok());
    return config.failure().text;
  };
  CHECK(failure("TRIREME_TRAIN__STEP", "5") ==
        "TRIREME_TRAIN__STEP: there is no key of this name (nothing would read it); did you mean "
        "'TRIREME_TRAIN__STEPS'?");
  CHECK(failure("TRIREME_XYZZY__PLUGH", "5") ==
        "TRIREME_XYZZY__PLUGH: there is no key of this name (nothing would read it); unset it");
  CHECK(failure("TRIREME_TRAIN__STEPS", "many") ==
        "TRIREME_TRAIN__STEPS: train.steps = many is not a whole number (optimizer updates of the "
        "whole run); give 1 or more steps");
}

TEST_CASE("many mistakes are cut short") {
  const std::vector<std::string> settings(100, "a=b");
  const auto config = Config::resolve({.files = {}, .environment = {}, .settings = settings});
  REQUIRE_FALSE(config.ok());
  CHECK(config.failure().text.ends_with("\n... and 80 more"));
}

TEST_CASE("a value that is checked alone is checked with the others afterwards") {
  const auto changed = Config()
                           .with("train.global_batch", "3", {})
                           .value()
                           .with("train.micro_batch", "2", {})
                           .value();
  CHECK_FALSE(trireme::config::check(changed).ok());
}

TEST_CASE("a trial of few steps keeps the warm-up of the long run, and is told") {
  const auto notes_of = [](const std::vector<std::string>& settings) {
    const auto config = Config::resolve({.files = {}, .environment = {}, .settings = settings});
    REQUIRE(config.ok());
    return notes(*config);
  };
  CHECK(notes_of({"train.steps=10", "optimizer.warmup_steps=10"}).empty());
  CHECK(notes_of({"train.steps=2", "optimizer.warmup_steps=20"}) ==
        std::vector<std::string>{
            "optimizer.warmup_steps = 20 (--set) is more than train.steps = 2 (--set): the "
            "learning rate rises all the time, to 0.1 of its height"});
  CHECK(notes_of({"train.steps=10", "optimizer.warmup_steps=5", "optimizer.decay_steps=6",
                  "optimizer.curve=wsd"}) ==
        std::vector<std::string>{
            "optimizer.warmup_steps = 5 (--set) and optimizer.decay_steps = 6 (--set) together are "
            "more than train.steps = 10 (--set): the learning rate falls in the 5 steps that are "
            "left"});
}
