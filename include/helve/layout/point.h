// Places: coordinates by axis, one place and several.
// They are what a layout answers with, so they are flat and sorted: no allocation for the few axes that there are.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

#include "helve/layout/axis.h"
#include "helve/support/inline_vector.h"

namespace helve {

/// A list of axes.
using Axes = InlineVector<Axis, 4>;

/// A place, or a displacement: coordinates by axis. An axis that is not mentioned has coordinate 0. A map from axes to
/// integers, sorted by axis; it equals another that mentions the same axes.
class Point {
 public:
  struct Entry {
    Axis first;
    int64_t second = 0;

    bool operator==(const Entry&) const = default;
    std::strong_ordering operator<=>(const Entry&) const = default;
  };
  using value_type = Entry;
  using iterator = Entry*;
  using const_iterator = const Entry*;

  Point() = default;
  /// The first of two entries for one axis counts.
  Point(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) emplace(entry.first, entry.second);
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  Entry* begin() { return entries_.begin(); }
  Entry* end() { return entries_.end(); }
  const Entry* begin() const { return entries_.begin(); }
  const Entry* end() const { return entries_.end(); }

  const Entry* find(Axis axis) const {
    for (const Entry& entry : entries_) {
      if (entry.first == axis) return &entry;
    }
    return end();
  }
  Entry* find(Axis axis) { return const_cast<Entry*>(std::as_const(*this).find(axis)); }
  size_t count(Axis axis) const { return find(axis) == end() ? 0 : 1; }
  /// The coordinate on `axis`, 0 when it is not mentioned.
  int64_t at(Axis axis) const {
    const Entry* found = find(axis);
    return found == end() ? 0 : found->second;
  }
  /// The coordinate on `axis`, which is mentioned from now on.
  int64_t& operator[](Axis axis) { return emplace(axis, 0)->second; }
  /// The entry of `axis`, made with `value` when there is none.
  Entry* emplace(Axis axis, int64_t value) {
    Entry* at = std::find_if(begin(), end(), [&](const Entry& entry) { return !(entry.first < axis); });
    if (at != end() && at->first == axis) return at;
    const auto place = at - begin();
    entries_.insert(at, {axis, value});
    return begin() + place;
  }
  /// Mentions `axis` no longer.
  void erase(Axis axis) {
    if (const Entry* at = find(axis); at != end()) entries_.erase(at);
  }
  /// Mentions `axis`, which is beyond all that are mentioned.
  void append(Axis axis, int64_t value) { entries_.push_back({axis, value}); }

  template <class Test>
  friend void erase_if(Point& point, Test&& test) {
    erase_if(point.entries_, test);
  }
  friend bool operator==(const Point&, const Point&) = default;
  friend bool operator<(const Point& a, const Point& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  InlineVector<Entry, 4> entries_;
};

/// Points that mention the same axes: a table with a row for each.
class Points {
 public:
  /// Walks over the rows.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Point;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Point;

    Iterator() = default;
    Iterator(const Points* points, size_t row) : points_(points), row_(row) {}
    Point operator*() const { return (*points_)[row_]; }
    Iterator& operator++() {
      ++row_;
      return *this;
    }
    Iterator operator++(int) { return {points_, row_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Points* points_ = nullptr;
    size_t row_ = 0;
  };

  explicit Points(const Axes& axes) : axes_(axes) {}

  const Axes& axes() const { return axes_; }
  size_t size() const { return size_; }
  /// The coordinates of a point, in the order of axes().
  const int64_t* row(size_t i) const { return coordinates_.data() + i * axes_.size(); }
  int64_t* row(size_t i) { return coordinates_.data() + i * axes_.size(); }
  Point operator[](size_t i) const {
    Point point;
    for (size_t a = 0; a < axes_.size(); ++a) point.append(axes_[a], row(i)[a]);
    return point;
  }
  Point front() const { return (*this)[0]; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }

  /// Changes the number of rows; new ones are not set.
  void resize(size_t rows) {
    coordinates_.resize_unset(rows * axes_.size());
    size_ = rows;
  }
  /// Sorts the rows by their coordinates, one axis after the other, and leaves out repeated ones.
  void sort();

  friend bool operator==(const Points&, const Points&) = default;
  friend bool operator==(const Points& a, const std::vector<Point>& b) {
    return a.size() == b.size() && std::equal(b.begin(), b.end(), a.begin());
  }

 private:
  Axes axes_;
  InlineVector<int64_t, 16> coordinates_;
  size_t size_ = 0;
};

}  // namespace helve
