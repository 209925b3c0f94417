// SPDX-License-Identifier: Apache-2.0
#include "keys.hpp"

#include <utility>

namespace trireme::schema {

std::vector<Key> data_keys() {
  Key train{.section = "data",
            .name = "train",
            .type = Type::weighted_texts,
            .concern = Concern::training,
            .documentation =
                "Prefixes of token files to train on (PREFIX.bin and PREFIX.idx), "
                "each with an optional weight: `books:0.7, code:0.3`. Paths are "
                "relative to the working directory."};
  auto validation = train;
  validation.name = "validation";
  validation.concern = Concern::running;
  validation.documentation = "Prefixes of held-out token files, for evaluation.";
  Key tokenizer{.section = "data",
                .name = "tokenizer",
                .concern = Concern::model,
                .documentation =
                    "The tokenizer.json that made the tokens: gives the vocabulary size and is "
                    "copied into the run, which then needs it no more."};
  Key shuffle{.section = "data",
              .name = "shuffle",
              .type = Type::flag,
              .concern = Concern::training,
              .default_text = "true",
              .documentation = "Whether sequences come in a random order, a new one each epoch."};
  Key seed{.section = "data",
           .name = "seed",
           .type = Type::integer,
           .concern = Concern::training,
           .default_text = "auto",
           .range = at_least(0),
           .auto_rule = "train.seed",
           .documentation = "Seed of the order of sequences."};
  return {train, validation, tokenizer, shuffle, seed};
}

namespace {

Key checkpoint_integer(std::string_view name, std::string_view default_text, std::string_view unit,
                       std::string_view documentation) {
  return {.section = "checkpoint",
          .name = name,
          .type = Type::integer,
          .default_text = default_text,
          .unit = unit,
          .range = counts_from(0),
          .documentation = documentation};
}

/// When checkpoints are written.
std::vector<Key> save_keys() {
  Key asynchronous{
      .section = "checkpoint",
      .name = "asynchronous",
      .type = Type::flag,
      .default_text = "true",
      .documentation =
          "Whether checkpoints during training are written by a thread, from a copy of "
          "the state, while training goes on; the last one of a start never is."};
  Key every_minutes{
      .section = "checkpoint",
      .name = "every_minutes",
      .type = Type::real,
      .default_text = "30",
      .unit = "minutes",
      .range = at_least(0),
      .documentation =
          "Minutes between checkpoints, beside every_steps; 0 is off. The first of each start "
          "comes after a tenth of it."};
  return {asynchronous,
          checkpoint_integer("every_steps", "0", "steps",
                             "Steps between checkpoints; 0 is only at the end of the run."),
          every_minutes,
          checkpoint_integer("failures_allowed", "3", "checkpoints",
                             "Saves that may fail in a row, training going on; one more ends the "
                             "run (exit code 6).")};
}

/// Which checkpoints stay.
std::vector<Key> retention_keys() {
  return {checkpoint_integer(
              "keep_best", "0", "checkpoints",
              "Checkpoints of the lowest validation loss that are kept besides; an evaluation "
              "among the best is followed by a checkpoint. Needs `train.eval_every`."),
          checkpoint_integer(
              "keep_every", "0", "steps",
              "Checkpoints of multiples of so many steps are made, and kept for ever; 0: none."),
          checkpoint_integer(
              "keep_last", "3", "checkpoints",
              "Newest checkpoints that are kept, older ones are removed once a newer one is "
              "committed; 0 keeps all. Tagged ones (`trireme checkpoint tag`) and the one that "
              "this start has loaded stay, too.")};
}

Key directory_key() {
  return {
      .section = "checkpoint",
      .name = "directory",
      .documentation =
          "Where the run keeps its checkpoints: a folder that all nodes see, or an object store "
          "(s3://BUCKET/NAME; credentials, region and endpoint as the AWS tools take them from "
          "the environment) or HDFS (webhdfs://HOST:PORT/PATH, as HADOOP_USER_NAME or with the "
          "token "
          "in HADOOP_WEBHDFS_TOKEN). Empty: `checkpoints` in the run directory."};
}

/// Steps in storage that each node has for itself.
std::vector<Key> node_keys() {
  return {
      {.section = "checkpoint",
       .name = "local_directory",
       .documentation =
           "Folder in storage that each node has for itself (NVMe, /dev/shm): checkpoints during "
           "training are committed there first, with copies on other nodes, and from there copied "
           "to the run directory while training goes on; a start recovers the newest that its "
           "nodes complete. Room for three steps and their copies is needed. Empty: none."},
      checkpoint_integer("local_every_steps", "0", "steps",
                         "Steps between checkpoints in `checkpoint.local_directory`, beside those "
                         "that are due in the run directory; 0 is only these."),
      checkpoint_integer("replicas", "1", "copies",
                         "Copies of each rank's part of a checkpoint in "
                         "`checkpoint.local_directory`, on as many other nodes.")};
}

}  // namespace

std::vector<Key> checkpoint_keys() {
  auto keys = save_keys();
  keys.push_back(directory_key());
  for (auto& key : node_keys()) keys.push_back(std::move(key));
  for (auto& key : retention_keys()) keys.push_back(std::move(key));
  keys.push_back({.section = "checkpoint",
                  .name = "key_file",
                  .documentation =
                      "A file with a secret key (mode 0600): manifests are signed with it "
                      "(HMAC-SHA-256), and none that is not is loaded."});
  keys.push_back(
      {.section = "checkpoint",
       .name = "load",
       .concern = Concern::training,
       .default_text = "auto",
       .auto_rule = "the newest verified step of the run directory; none if there is none",
       .documentation = "Where weights come from: a checkpoint step, a run directory or a "
                        "Hugging Face folder (weights only), or `none` to start anew."});
  return keys;
}

namespace {

/// Keys of the placement of ranks.
std::vector<Key> place_keys() {
  Key binding{.section = "run",
              .name = "binding",
              .type = Type::choice,
              .default_text = "auto",
              .choices = {"auto", "none"},
              .documentation =
                  "Whether ranks are bound: auto gives each rank whole cores of its "
                  "own, as many as the others; none leaves it where the launcher put "
                  "it."};
  Key order{.section = "run",
            .name = "order",
            .type = Type::choice,
            .default_text = "auto",
            .choices = {"auto", "topology", "slurm"},
            .documentation =
                "Which process becomes which rank: topology follows the network (tensor "
                "parallelism inside a node, rings of data parallelism inside a switch, stages "
                "near one another), slurm keeps the launcher's numbers; auto is topology, unless "
                "tasks were dealt out by hand (srun --distribution)."};
  return {binding, order};
}

/// Keys of the run's use of the surrounding job.
std::vector<Key> job_keys() {
  Key job_comment{.section = "run",
                  .name = "job_comment",
                  .type = Type::seconds,
                  .default_text = "10min",
                  .unit = "seconds",
                  .range = at_least(0),
                  .documentation =
                      "How often, at most, step and loss are written into the comment of the "
                      "Slurm job (squeue -o %k); in the first minutes every minute, then less "
                      "often. 0 never; nothing is written outside of a job, or over somebody "
                      "else's comment."};
  Key signal_lead{.section = "run",
                  .name = "signal_lead",
                  .type = Type::seconds,
                  .default_text = "auto",
                  .unit = "seconds",
                  .range = at_least(0),
                  .auto_rule =
                      "a minute, and three times the longest step (or batch of an evaluation) and "
                      "save so far",
                  .documentation =
                      "How long before the job's time limit the run saves and stops "
                      "with exit code 75. 0 never stops for the limit."};
  return {job_comment, signal_lead};
}

}  // namespace

std::vector<Key> run_keys() {
  Key directory{.section = "run",
                .name = "directory",
                .default_text = "auto",
                .auto_rule = "runs/<run.name>",
                .documentation =
                    "Run directory: configuration, metrics, logs and checkpoints. "
                    "A run resumes from its own directory."};
  Key name{.section = "run",
           .name = "name",
           .default_text = "run",
           .documentation = "Name of the run in metrics and as its folder under runs/."};
  Key tags{.section = "run",
           .name = "tags",
           .type = Type::texts,
           .documentation = "Words to find the run by, copied to versions.json."};
  std::vector<Key> keys{directory, name, tags};
  for (auto& key : place_keys()) keys.push_back(std::move(key));
  for (auto& key : job_keys()) keys.push_back(std::move(key));
  return keys;
}

std::vector<Key> track_keys() {
  return {
      {.section = "track",
       .name = "to",
       .type = Type::texts,
       .documentation =
           "Where a thread of rank 0 sends the record to: tensorboard=DIR, wandb=DIR, "
           "mlflow=URL, otlp=URL, prometheus=FILE, as `trireme track sync` does. A tracker that "
           "is gone stops nothing. Paths are relative to the working directory."},
      {.section = "track",
       .name = "interval",
       .type = Type::seconds,
       .default_text = "10s",
       .unit = "seconds",
       .range = between(0.1, 86400),
       .documentation = "Time between two sendings."},
      {.section = "track",
       .name = "trace_ranks",
       .type = Type::choice,
       .default_text = "sampled",
       .choices = {"sampled", "single", "first-of-node", "all"},
       .documentation =
           "Whose spans of recorded steps OpenTelemetry gets: those of at most 16 ranks, evenly "
           "spread (sampled), of the first rank, of each node's first, or of all."},
      {.section = "track",
       .name = "prometheus_port",
       .type = Type::integer,
       .default_text = "0",
       .range = between(0, 65535),
       .documentation =
           "Port at which the first rank of each node answers GET /metrics for Prometheus: the "
           "run's numbers, each rank's, and the node's network. 0: none does. Where it is taken, "
           "the "
           "system chooses another; RUN/track/prometheus.targets.json has all of them (file_sd), "
           "RUN/track/prometheus.token the token that a scrape must send."},
      {.section = "track",
       .name = "prometheus_interface",
       .default_text = "auto",
       .auto_rule = "the one with the address of the host's name, else the first that is up",
       .documentation = "Network interface at which it answers: ib0, say, or lo."}};
}

}  // namespace trireme::schema
