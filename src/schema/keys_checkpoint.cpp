// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::checkpoint> checkpoint{.concern = Concern::running};

constexpr Key checkpoint_rows[] = {
    checkpoint.key<&CheckpointOptions::asynchronous>(
        "true",
        "Whether checkpoints during training are written by a thread, from a copy of the state, "
        "while training goes on; the last one of a start never is."),
    checkpoint.key<&CheckpointOptions::every_steps>(
        "0", {.unit = "steps", .range = counts_from(0)},
        "Steps between checkpoints; 0 is only at the end of the run."),
    checkpoint.key<&CheckpointOptions::every_minutes>(
        "30",
        {.unit = "minutes",
         .range = at_least(0),
         .auto_rule =
             "the interval with which failures of nodes cost least, by site.mtbf_node_days "
             "of plan.machine and the times of this start's saves, from 1 minute to 6 "
             "hours"},
        "Minutes between checkpoints, beside every_steps; 0 is off. The first of each start comes "
        "after a tenth of it."),
    checkpoint.key<&CheckpointOptions::failures_allowed>(
        "3", {.unit = "checkpoints", .range = counts_from(0)},
        "Saves that may fail in a row, training going on; one more ends the run (exit code 6)."),
    checkpoint.key<&CheckpointOptions::directory>(
        "",
        "Where the run keeps its checkpoints: a folder that all nodes see, or an object store "
        "(s3://BUCKET/NAME; credentials, region and endpoint as the AWS tools take them from the "
        "environment) or HDFS (webhdfs://HOST:PORT/PATH, as HADOOP_USER_NAME or with the token in "
        "HADOOP_WEBHDFS_TOKEN). Empty: `checkpoints` in the run directory."),
    checkpoint.key<&CheckpointOptions::local_directory>(
        "",
        "Folder in storage that each node has for itself (NVMe, /dev/shm): checkpoints during "
        "training are committed there first, with copies on other nodes, and from there copied to "
        "the run directory while training goes on; a start recovers the newest that its nodes "
        "complete. Room for three steps and their copies is needed. Empty: none."),
    checkpoint.key<&CheckpointOptions::local_every_steps>(
        "0", {.unit = "steps", .range = counts_from(0)},
        "Steps between checkpoints in `checkpoint.local_directory`, beside those that are due in "
        "the run directory; 0 is only these."),
    checkpoint.key<&CheckpointOptions::replicas>(
        "1", {.unit = "copies", .range = counts_from(0)},
        "Copies of each rank's part of a checkpoint in `checkpoint.local_directory`, on as many "
        "other nodes."),
    checkpoint.key<&CheckpointOptions::keep_best>(
        "0", {.unit = "checkpoints", .range = counts_from(0)},
        "Checkpoints of the lowest validation loss that are kept besides; an evaluation among the "
        "best is followed by a checkpoint. Needs `train.eval_every`."),
    checkpoint.key<&CheckpointOptions::keep_every>(
        "0", {.unit = "steps", .range = counts_from(0)},
        "Checkpoints of multiples of so many steps are made, and kept for ever; 0: none."),
    checkpoint.key<&CheckpointOptions::keep_last>(
        "3", {.unit = "checkpoints", .range = counts_from(0)},
        "Newest checkpoints that are kept, older ones are removed once a newer one is committed; 0 "
        "keeps all. Tagged ones (`trireme checkpoint tag`) and the one that this start has loaded "
        "stay, too."),
    checkpoint.key<&CheckpointOptions::key_file>(
        "",
        "A file with a secret key (mode 0600): manifests are signed with it (HMAC-SHA-256), and "
        "none that is not is loaded."),
    checkpoint.key<&CheckpointOptions::load>(
        "auto",
        {.concern = Concern::training,
         .auto_rule = "the newest verified step of the run directory; none if there is none"},
        "Where weights come from: a checkpoint step, a run directory or a Hugging Face folder "
        "(weights only), or `none` to start anew."),
};

}  // namespace

std::span<const Key> checkpoint_keys() {
  return checkpoint_rows;
}

}  // namespace trireme::schema
