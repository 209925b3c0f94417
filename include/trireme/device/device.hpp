// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace trireme::device {

class Device;

/// A place in the order of a device's work.
class Event {
 public:
  class Point {
   public:
    virtual ~Point() = default;
    /// Without blocking.
    virtual bool passed() = 0;
    /// Blocks the host, which can do nothing else meanwhile.
    virtual void block() = 0;
    /// Handle as a library has it: a GPU's cudaEvent_t.
    virtual void* handle() = 0;
    virtual Device& device() = 0;
  };

  /// Passed already.
  Event() = default;
  explicit Event(std::unique_ptr<Point> point) : point_(std::move(point)) {}

  bool passed() {
    if (point_ && point_->passed()) point_.reset();
    return !point_;
  }
  /// Blocks the host until all work issued before the event is done, see Device::await.
  void wait();
  /// Null when it is known to have passed.
  Point* point() const { return point_.get(); }

 private:
  std::unique_ptr<Point> point_;
};

/// Order of work where a device has too much of it. Kernels of the device's own stream come
/// last: what others wait for should not queue up behind them.
enum class Priority {
  overlapped,  ///< may take its time beside computation: gradients, parameters
  awaited      ///< computation waits for it: tensor parallelism, messages
};

/// A stream beside a device's own, for copies, and for work that a library issues there by itself;
/// the work of both runs at once.
class SideStream {
 public:
  virtual ~SideStream() = default;
  /// Handle as a library has it: a GPU's cudaStream_t.
  virtual void* handle() = 0;
  /// Issues copies here as Device does on its own stream. The host's side lies in memory of
  /// Device::staging(): others may hold up the host.
  virtual void copy_in(const void* from, const Tensor& to) = 0;
  virtual void copy_out(const Tensor& from, void* to) = 0;
  /// Work issued here from now on begins after the event, of whichever stream.
  virtual void follow(const Event& event) = 0;
  /// A place in the order of this stream.
  virtual Event record() = 0;
};

/// Watcher that must go on while the host waits for a device: the device may wait for peers that
/// need this process, or that never come.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Called again and again. What it throws ends the wait.
  virtual void look() = 0;
  /// The wait is over, in good order.
  virtual void rest() {}
};

/// Adds up how long a device's order stands still between pairs of marks; on the host's own memory,
/// how long the host does.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  virtual void start() = 0;
  virtual void stop() = 0;
  /// Seconds between the pairs that the device has passed and no call has told of yet; the others
  /// are told later.
  virtual double take() = 0;
};

/// CUDA graph, or what stands in for one: work that was captured instead of done. It runs the same
/// kernels on the same tensors with the same numbers whenever it is launched. Ends before its
/// tensors and its device do.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual void launch() = 0;
  /// True if nothing was captured.
  virtual bool is_empty() const { return false; }
};

/// A device cannot capture what it was told to (ExitCode::topology).
class CaptureRefused : public base::Error {
 public:
  explicit CaptureRefused(const std::string& text,
                          std::source_location where = std::source_location::current())
      : Error(base::ExitCode::topology, text, where) {}
};

/// Memory of kernels' tensors, and the one stream on which their work and copies run, in the
/// order of their issue. On the host's own memory every call is done when it returns. On any other
/// device the host must not follow a tensor's pointer: what it gives is copied in, what it takes is
/// copied out and waited for. Outlives its arenas and events. One thread at a time.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;
  /// "host", "GPU 0000:1b:00.0".
  virtual const char* name() const = 0;
  /// Whether the host may follow pointers into the device's arenas.
  virtual bool is_host() const = 0;

  /// One block of exactly this many bytes. What it holds at first is undefined but on the host,
  /// where it is zero.
  virtual Arena arena(Purpose purpose, std::size_t capacity_bytes) = 0;
  /// Host memory that copies run from and to without the host's help.
  virtual Arena staging(Purpose purpose, std::size_t capacity_bytes) = 0;

  /// Issues a copy between host memory and a contiguous tensor. The host's side stays as it is, and
  /// is not read, until an event recorded later has passed.
  virtual void copy_in(const void* from, const Tensor& to) = 0;
  virtual void copy_out(const Tensor& from, void* to) = 0;
  /// Issues a copy between contiguous tensors of the device, of equally many bytes.
  virtual void copy(const Tensor& from, const Tensor& to) = 0;
  virtual Event record() = 0;
  /// Work issued from now on begins after the event, of whichever stream. The host goes on.
  virtual void follow(const Event& event) = 0;
  /// Bytes of a device's memory that all programs there have taken, this one's arenas and contexts
  /// among it; 0 on the host.
  virtual std::size_t taken_bytes() { return 0; }
  /// All work issued so far is done when this returns; that of side streams may be under way.
  virtual void synchronize() { record().wait(); }
  /// Nothing on the host, where work is done when it is issued. The device outlives it.
  virtual std::unique_ptr<SideStream> side_stream(Priority priority) = 0;
  virtual std::unique_ptr<Stopwatch> stopwatch() = 0;

  virtual bool can_capture() const { return false; }
  virtual bool capturing() const { return false; }
  /// Until end_capture(), or abandon_capture() after an error, what is issued is captured and
  /// not done. Kernels and copies between tensors can be; waits, events, sums for the host, copies
  /// from and to it, and new memory cannot: CaptureRefused.
  virtual void begin_capture();
  virtual std::unique_ptr<CapturedGraph> end_capture();
  virtual void abandon_capture();
  /// Throws CaptureRefused during a capture, for operations that a graph cannot hold.
  void expect_no_capture(const char* what) const;

  /// Blocks the host until the event has passed; watchers go on meanwhile.
  void await(Event::Point& point);
  /// Number of times that the host has waited for this device: there launching stops.
  std::uint64_t waits() const { return waits_; }
  /// A watcher must be removed as often as it is added.
  void add(Watcher& watcher) { watchers_.push_back(&watcher); }
  void remove(Watcher& watcher);

 private:
  std::vector<Watcher*> watchers_;
  std::uint64_t waits_ = 0;
};

/// The host's own memory.
Device& host_device();

/// For the end of what uses memory that others own: waits until the device is done with it, in
/// good order; while unwinding nothing may be left that waits for peers, and nothing is waited for.
/// Failures are logged.
void leave(Device& device) noexcept;

/// Duty of callers of copies; a breach is a defect of Trireme (ExitCode::internal).
void expect_contiguous(const Tensor& x);
void expect_alike(const Tensor& from, const Tensor& to);

/// Host memory for the values of tensors of a device: in the tensors themselves
/// where it may follow them, else in host memory beside them.
class HostMirror {
 public:
  explicit HostMirror(Device& device) : device_(device) {}

  /// The host's view of a contiguous tensor; zeros at first unless it is the tensor itself. Valid
  /// as long as this object.
  Tensor of(const Tensor& x);
  /// The host's views take the tensors' values, once all work issued so far is done.
  void fetch();
  /// The tensors take the values of the host's views; done when this returns.
  void store();

 private:
  struct Pair {
    Tensor there;
    Tensor here;
  };

  Device& device_;
  std::vector<Pair> pairs_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

}  // namespace trireme::device
