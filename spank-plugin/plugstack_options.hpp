// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace trireme::spank {

/// Values of the plugin's arguments in plugstack.conf.
struct PlugstackOptions {
  enum class Limit { keep, unlimited, none };
  /// base=FOLDER: root's folder for files of jobs; %h is the node's host name.
  std::string base = "/var/spool/trireme";
  /// memlock=keep|unlimited|none: RDMA registers memory that must stay locked, but the site decides
  /// whether to raise a limit.
  Limit memlock = Limit::keep;
  /// core=keep|none|unlimited: a core file of every rank can fill a file system.
  Limit core = Limit::keep;
};

/// Invalid arguments are logged and left out: a typing error of the site stops no job.
PlugstackOptions read_plugstack_options(const std::vector<std::string>& arguments);

}  // namespace trireme::spank
