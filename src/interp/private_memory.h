// Private memory that is allocated outside of a loop of independent iterations: each iteration has its own copy.
// An iteration finds the contents from before the loop and sees no writes of others; after the loop an element has the
// value that an iteration left. If several left one, its value is undefined.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "scope.h"

namespace helve::interp {

/// The slots of the private buffers around `body`, the body of an independent loop, that it writes; none if one memory
/// serves all iterations.
std::vector<size_t> private_around(const Stmt& body, const Scope& scope);

/// What one run of a loop does with that memory: each write is noted, so that it costs what iterations write.
class PrivateMemory {
 public:
  /// Listens from here on; the frame's trace has entered the loop.
  PrivateMemory(const std::vector<size_t>& slots, Frame& frame);

  /// Takes what the iteration left, and gives back what the next one is to find.
  void end_iteration();
  /// Puts behind the loop what its iterations left there.
  void end_loop();

 private:
  struct Element {
    Scalar value;
    Cell cell;  ///< in a checked run
    bool several = false;
  };

  /// One buffer, from the loop's begin to its end.
  class Part final : public WriteListener {
   public:
    explicit Part(Instance& instance) : instance_(instance), around_(instance.tell(this)) {}
    Part(const Part&) = delete;
    ~Part() override { instance_.tell(around_); }
    void before_write(int64_t offset) override;
    void end_iteration();
    void end_loop(const Left& loop);

   private:
    Element element_at(int64_t offset) const;
    void put(int64_t offset, const Element& element);

    Instance& instance_;
    WriteListener* around_;             ///< of an iteration that this loop is a part of
    std::map<int64_t, Element> found_;  ///< by offset: what stood where the present iteration wrote
    std::map<int64_t, Element> left_;   ///< by offset
  };

  std::deque<Part> parts_;
  Left loop_;
};

}  // namespace helve::interp
