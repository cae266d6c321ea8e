// The search for the cheapest steps.
// Between the two ends stand distributions in which some axes have their old role, some their new one, and some hold
// copies. Costs are of the corners of the mesh, where blocks are whole or shortest, so they need no proof; a chain is
// chosen by them, and its forms are proved. Where a proof fails the step is the exchange, and the search goes on with
// that.
#include "helve/plan/redistribution.h"

#include <algorithm>
#include <map>

#include "boxes.h"
#include "cost.h"

namespace helve {

namespace {

class Search {
 public:
  Search(const Distribution& from, const Distribution& to, int64_t element_bytes, const Network& network)
      : element_bytes_(element_bytes), network_(network) {
    add(from);
    add(to);
    add_between(from, to);
    corners(from.mesh);
  }

  std::vector<CollectiveStep> best(double* seconds) {
    while (true) {
      std::vector<size_t> chain = cheapest();
      std::vector<CollectiveStep> steps;
      bool as_suggested = true;
      for (size_t k = 1; k < chain.size(); ++k) {
        const std::pair<size_t, size_t> ends{chain[k - 1], chain[k]};
        Link& link = links_.at(ends);
        if (!link.proved && !link.seen) {  // by some devices, before any proof
          link.seen = true;
          const Transfer transfer(nodes_[ends.first], nodes_[ends.second]);
          if (refuted(transfer, link.form)) {
            link.form = CollectiveForm::Exchange;
            link.seconds = seconds_of(transfer, link.form);
            as_suggested = false;
          }
        }
      }
      for (size_t k = 1; as_suggested && k < chain.size(); ++k) {
        const std::pair<size_t, size_t> ends{chain[k - 1], chain[k]};
        Link& link = links_.at(ends);
        if (!link.proved) {
          link.proved = derive(Transfer(nodes_[ends.first], nodes_[ends.second]));
          if (link.proved->form != link.form) {
            link.form = link.proved->form;
            link.seconds = seconds_of(link.proved->transfer, link.form);
            as_suggested = false;
          }
        }
        steps.push_back(*link.proved);
      }
      if (!as_suggested) continue;
      *seconds = cost_of(chain);
      return steps;
    }
  }

 private:
  struct Link {
    CollectiveForm form;
    double seconds;
    bool seen = false;  ///< not refuted by corners
    std::optional<CollectiveStep> proved;
  };

  void add(const Distribution& each) {
    const bool known = std::any_of(nodes_.begin(), nodes_.end(), [&](const Distribution& other) {
      return other.cut == each.cut && other.layout == each.layout && other.partial == each.partial;
    });
    if (!known || nodes_.size() < 2) nodes_.push_back(each);
  }

  /// Every distribution in which each axis that changes has its old role, its new one, or holds copies.
  void add_between(const Distribution& from, const Distribution& to) {
    enum Choice : int64_t { Old, New, Copies };
    constexpr int64_t kMaxChanging = 4;  // 81 distributions; of more axes, the first ones take part
    std::vector<int64_t> choices(from.mesh.size(), 1);
    int64_t changing = 0;
    for (size_t a = 0; a < from.mesh.size(); ++a) {
      if (changes(from, to, from.mesh[a].axis) && changing < kMaxChanging) {
        choices[a] = 3;
        ++changing;
      }
    }
    for_each_index(choices, [&](const std::vector<int64_t>& choice) {
      const auto takes = [&](const MeshAxis& each, Choice wanted) {
        return choice[static_cast<size_t>(std::find(from.mesh.begin(), from.mesh.end(), each) - from.mesh.begin())] ==
               wanted;
      };
      std::vector<std::vector<MeshAxis>> cut(from.shape.size());
      for (size_t d = 0; d < cut.size(); ++d) {
        for (const MeshAxis& each : from.cut[d]) {
          if (takes(each, Old)) cut[d].push_back(each);
        }
        for (const MeshAxis& each : to.cut[d]) {
          if (takes(each, New)) cut[d].push_back(each);
        }
      }
      Point fixed;
      std::vector<Partial> partial;
      for (size_t a = 0; a < choice.size(); ++a) {
        if (choice[a] == Copies) continue;
        const Distribution& side = choice[a] == Old ? from : to;
        const Axis axis = side.mesh[a].axis;
        if (side.layout.offset().count(axis)) fixed[axis] = side.layout.offset(axis);
        if (const Partial* terms = side.partial_over(axis)) partial.push_back(*terms);
      }
      const bool mixed =
          std::any_of(partial.begin(), partial.end(), [&](const Partial& each) { return each.op != partial[0].op; });
      if (!mixed)
        add(make_distribution(from.shape, from.mesh, cut, fixed, partial));  // terms cannot begin beside others
    });
  }

  void corners(const std::vector<MeshAxis>& mesh) {
    std::vector<int64_t> two;
    for (const MeshAxis& each : mesh) two.push_back(std::min<int64_t>(2, each.extent));
    for_each_index(two, [&](const std::vector<int64_t>& index) {
      std::vector<int64_t> device;
      for (size_t a = 0; a < mesh.size(); ++a) device.push_back(index[a] * (mesh[a].extent - 1));
      corners_.push_back(device);
    });
  }

  double seconds_of(const Transfer& transfer, CollectiveForm form) const {
    if (form == CollectiveForm::Local) return 0;
    std::vector<size_t> axes;
    for (size_t a = 0; a < transfer.roles().size(); ++a) {
      const Axis axis = transfer.from().mesh[a].axis;
      if (changes(transfer.from(), transfer.to(), axis)) axes.push_back(a);
    }
    const CollectiveStep step{form, axes, transfer};
    int64_t elements = 0, partners = 0;
    for (const std::vector<int64_t>& device : corners_) {
      elements = std::max(elements, elements_received(step, device));
      if (form != CollectiveForm::Exchange) continue;
      partners = std::max(partners, transfer.partners(device));
    }
    return static_cast<double>(rounds(form, members_of(transfer, axes), partners)) * network_.latency +
           static_cast<double>(elements * element_bytes_) / network_.bandwidth;
  }

  const Link& link(size_t from, size_t to) {
    const auto found = links_.find({from, to});
    if (found != links_.end()) return found->second;
    const Transfer transfer(nodes_[from], nodes_[to]);
    const CollectiveForm form = suggested_form(transfer);
    return links_.emplace(std::pair(from, to), Link{form, seconds_of(transfer, form), false, {}}).first->second;
  }

  double cost_of(const std::vector<size_t>& chain) {
    double out = 0;
    for (size_t k = 1; k < chain.size(); ++k) out += link(chain[k - 1], chain[k]).seconds;
    return out;
  }

  /// Of chains of up to three steps; of equally cheap ones the shortest.
  std::vector<size_t> cheapest() {
    constexpr size_t kFrom = 0, kTo = 1;
    std::vector<size_t> out = {kFrom, kTo};
    double least = link(kFrom, kTo).seconds;
    const auto consider = [&](const std::vector<size_t>& chain) {
      const double cost = cost_of(chain);
      if (cost < least * (1 - 1e-9)) {
        least = cost;
        out = chain;
      }
    };
    for (size_t a = 2; a < nodes_.size(); ++a) consider({kFrom, a, kTo});
    for (size_t a = 2; a < nodes_.size(); ++a) {
      if (link(kFrom, a).seconds >= least) continue;
      for (size_t b = 2; b < nodes_.size(); ++b) {
        if (a != b && link(kFrom, a).seconds + link(b, kTo).seconds < least) consider({kFrom, a, b, kTo});
      }
    }
    return out;
  }

  int64_t element_bytes_;
  Network network_;
  std::vector<Distribution> nodes_;
  std::vector<std::vector<int64_t>> corners_;
  std::map<std::pair<size_t, size_t>, Link> links_;
};

}  // namespace

Redistribution redistribute(const Distribution& from, const Distribution& to, int64_t element_bytes,
                            const Network& network) {
  const Transfer whole(from, to);  // refuses what cannot be
  Redistribution out{from, to, element_bytes, {}, 0};
  const bool reduced = std::any_of(whole.roles().begin(), whole.roles().end(),
                                   [](const Transfer::AxisRole& role) { return role.reduced || role.begun; });
  if (!reduced && from.cut == to.cut && from.layout == to.layout) return out;
  out.steps = Search(from, to, element_bytes, network).best(&out.seconds);
  return out;
}

}  // namespace helve
