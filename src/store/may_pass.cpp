// SPDX-License-Identifier: Apache-2.0
#include "store/may_pass.hpp"

#include <algorithm>
#include <array>

namespace trireme::store {
namespace {

/// Errors that pass though their status is that of mistakes: "SafeModeException" and its like come
/// with 403, "RequestTimeout" with 400, "InternalError" with 200.
constexpr std::array passing_errors{
    // HDFS: a NameNode that is not the active one, is starting or has too many calls; a file whose
    // last writer it has not yet given up.
    std::string_view("StandbyException"),
    std::string_view("ObserverRetryOnActiveException"),
    std::string_view("RetriableException"),
    std::string_view("SafeModeException"),
    std::string_view("ServerTooBusyException"),
    std::string_view("NotReplicatedYetException"),
    std::string_view("AlreadyBeingCreatedException"),
    std::string_view("RecoveryInProgressException"),
    std::string_view("ConnectException"),
    std::string_view("SocketTimeoutException"),
    // S3, docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, and servers like it.
    std::string_view("RequestTimeout"),
    std::string_view("SlowDown"),
    std::string_view("ServiceUnavailable"),
    std::string_view("InternalError"),
    std::string_view("Throttling"),
    std::string_view("ThrottlingException"),
    std::string_view("RequestLimitExceeded"),
    std::string_view("RequestThrottled"),
    std::string_view("TooManyRequests"),
    std::string_view("BandwidthLimitExceeded"),
    std::string_view("OperationAborted"),
    std::string_view("ConditionalRequestConflict"),
};

}  // namespace

bool may_pass(const web::HttpResponse& response, std::string_view error_name) {
  if (response.is_final) return false;
  if (web::may_pass(response)) return true;
  return std::find(passing_errors.begin(), passing_errors.end(), error_name) !=
         passing_errors.end();
}

}  // namespace trireme::store
