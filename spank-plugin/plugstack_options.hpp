// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace trireme::spank {

/// Values of the plugin's arguments in plugstack.conf.
struct PlugstackOptions {
  enum class Limit { keep, unlimited, none };
  /// base=FOLDER: where root keeps what belongs to jobs; %h is the node's host name.
  std::string base = "/var/spool/trireme";
  /// memlock=keep|unlimited|none: RDMA registers memory that must stay locked, but a limit is the
  /// site's to raise.
  Limit memlock = Limit::keep;
  /// core=keep|none|unlimited: a core file of every rank can fill a file system.
  Limit core = Limit::keep;
};

/// Arguments that are wrong are reported and left out: a typing error of the site stops no job.
PlugstackOptions read_plugstack_options(const std::vector<std::string>& arguments);

}  // namespace trireme::spank
