// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/store/object_store.hpp"

#include "store/s3.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>

namespace trireme::store {

/// Parts of one object, whose number and tag S3 wants to hear at the end.
class S3Upload : public Upload {
 public:
  S3Upload(S3Store& store, std::string name);
  S3Upload(const S3Upload&) = delete;
  S3Upload& operator=(const S3Upload&) = delete;
  ~S3Upload() override;

  void write(std::size_t number, std::span<const std::byte> bytes) override;
  /// Parts do not wait for each other.
  void abandon() override {}
  void finish() override;

 private:
  /// An upload that was finished though no answer came is unknown to the server afterwards.
  bool has_object();

  S3Store& store_;
  std::string name_;
  std::string id_;
  std::mutex mutex_;
  std::map<std::size_t, std::string> tags_;
  std::uint64_t bytes_ = 0;
  bool finished_ = false;
};

}  // namespace trireme::store
