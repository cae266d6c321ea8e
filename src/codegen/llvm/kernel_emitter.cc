// The frame of a kernel: entry, arguments, the loop over blocks, and what is known of aliasing.
// Shared memory of a block that shares scratch is told apart only from memory it does not overlap.
#include "kernel_emitter.h"

#include "helve/support/diagnostic.h"

namespace helve::cpu {

using llvm::Value;

KernelEmitter::KernelEmitter(llvm::Module& module, Features features, const CpuOptions& options,
                             const KernelSource& source)
    : module_(module),
      context_(module.getContext()),
      b_(context_),
      arithmetic_(b_, features),
      options_(options),
      source_(source),
      interface_(kernel_interface(*source.stmt)) {
  if (options_.fast_math) b_.getFastMathFlags().setAllowContract();
  for (const BufferRef& buffer : interface_.buffers) {
    instance_count_ += source.mesh && buffer->scope == MemoryScope::Global;
  }
}

void KernelEmitter::emit(const std::string& symbol, const std::function<void(llvm::Function&)>& set_attributes) {
  llvm::Function* body = declare_body(symbol + ".blocks");
  set_attributes(*body);
  emit_entry(symbol, body, set_attributes);
  emit_body(body);
  separate_buffers();
  extract_outlines();
}

llvm::Function* KernelEmitter::declare_body(const std::string& symbol) {
  llvm::SmallVector<llvm::Type*, 16> types(interface_.buffers.size(), b_.getPtrTy());
  for (const VarRef& v : interface_.scalars) types.push_back(arithmetic_.value_type(v->dtype));
  types.append(static_cast<size_t>(instance_count_) + 2, b_.getInt64Ty());
  types.push_back(b_.getPtrTy());
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), types, false);
  auto* body = llvm::Function::Create(type, llvm::Function::InternalLinkage, symbol, module_);
  body->addFnAttr(llvm::Attribute::NoInline);  // the parameters' noalias would not outlive inlining unharmed
  body->getArg(static_cast<unsigned>(body->arg_size() - 1))->addAttr(llvm::Attribute::NoAlias);
  for (size_t i = 0; i < interface_.buffers.size(); ++i) {
    llvm::Argument* argument = body->getArg(static_cast<unsigned>(i));
    argument->setName(interface_.buffers[i]->name);
    if (is_apart(interface_, source_.may_alias, interface_.buffers[i].get()))
      argument->addAttr(llvm::Attribute::NoAlias);
  }
  return body;
}

void KernelEmitter::emit_entry(const std::string& symbol, llvm::Function* body,
                               const std::function<void(llvm::Function&)>& set_attributes) {
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* word = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, word, word, pointer}, false);
  auto* entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
  set_attributes(*entry);
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", entry));
  llvm::SmallVector<Value*, 16> args;
  for (size_t i = 0; i < interface_.buffers.size(); ++i) {
    args.push_back(b_.CreateLoad(pointer, b_.CreateConstInBoundsGEP1_64(pointer, entry->getArg(0), i)));
  }
  const size_t scalars = interface_.scalars.size();
  for (size_t i = 0; i < scalars + static_cast<size_t>(instance_count_); ++i) {
    Value* raw = b_.CreateLoad(word, b_.CreateConstInBoundsGEP1_64(word, entry->getArg(1), i));
    if (i >= scalars) {
      args.push_back(raw);
      continue;
    }
    const DType t = interface_.scalars[i]->dtype;
    llvm::Type* memory = arithmetic_.memory_type(t);
    Value* bits = b_.CreateTrunc(raw, b_.getIntNTy(memory->getScalarSizeInBits()));
    args.push_back(arithmetic_.from_memory(b_.CreateBitCast(bits, memory), t));
  }
  for (unsigned i : {2u, 3u, 4u}) args.push_back(entry->getArg(i));
  b_.CreateCall(body, args);
  b_.CreateRetVoid();
}

void KernelEmitter::bind_arguments(llvm::Function* body) {
  const size_t buffers = interface_.buffers.size();
  for (size_t i = 0; i < interface_.scalars.size(); ++i) {
    env_[interface_.scalars[i].get()] = Binding{body->getArg(static_cast<unsigned>(buffers + i)), nullptr, 0};
  }
  for (size_t i = 0; i < buffers; ++i) {
    const Buffer& buffer = *interface_.buffers[i];
    places_[&buffer] = place(buffer, body->getArg(static_cast<unsigned>(i)));
  }
}

void KernelEmitter::emit_body(llvm::Function* body) {
  function_ = body;
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", body));
  scratch_ = body->getArg(static_cast<unsigned>(body->arg_size() - 1));
  harmless_ = stack_slot(b_.getInt64Ty(), 1);
  b_.CreateStore(b_.getInt64(0), harmless_);
  bind_arguments(body);
  emit_blocks(body);
  order_nontemporal_stores();
  b_.CreateRetVoid();
}

void KernelEmitter::emit_blocks(llvm::Function* body) {
  const auto words = static_cast<unsigned>(body->arg_size());
  Value* begin = body->getArg(words - 3);
  Value* end = body->getArg(words - 2);
  const Kernel& kernel = *source_.stmt;
  llvm::SmallVector<Value*, 3> extents;
  for (const Expr& e : kernel.extents) extents.push_back(expr(e));
  counted_loop(b_.CreateSub(end, begin),
               [&](Value* iv) {
                 Value* block = b_.CreateAdd(begin, iv, "", false, true);
                 Value* rest = block;
                 for (size_t d = extents.size(); d-- > 0;) {
                   const bool outermost = d == 0;
                   Value* coordinate = outermost ? rest : b_.CreateURem(rest, extents[d]);
                   if (!outermost) rest = b_.CreateUDiv(rest, extents[d]);
                   env_[kernel.vars[d].get()] = Binding{coordinate, nullptr, 0};
                 }
                 place_instances(body, block);
                 stmt(kernel.body);
               },
               {});
}

/// In a mesh function the block is a core, with its own instance of each Global buffer.
void KernelEmitter::place_instances(llvm::Function* body, Value* block) {
  size_t next = interface_.buffers.size() + interface_.scalars.size();
  for (size_t i = 0; i < interface_.buffers.size() && instance_count_ > 0; ++i) {
    const Buffer& buffer = *interface_.buffers[i];
    if (buffer.scope != MemoryScope::Global) continue;
    Value* offset = b_.CreateMul(block, body->getArg(static_cast<unsigned>(next++)), "", false, true);
    places_[&buffer].base = b_.CreateInBoundsGEP(b_.getInt8Ty(), body->getArg(static_cast<unsigned>(i)), offset);
  }
}

void KernelEmitter::separate_buffers() {
  std::vector<const Buffer*> buffers;
  std::unordered_map<const Buffer*, llvm::MDNode*> scopes;
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  for (const auto& [access, buffer] : marked_) {
    if (scopes.contains(buffer)) continue;
    scopes[buffer] = metadata.createAnonymousAliasScope(domain);
    buffers.push_back(buffer);
  }
  std::unordered_map<const Buffer*, llvm::MDNode*> others;
  for (const Buffer* a : buffers) {
    llvm::SmallVector<llvm::Metadata*, 8> apart;
    for (const Buffer* b : buffers) {
      const Place& p = places_.at(a);
      const Place& q = places_.at(b);
      const bool overlap = p.begin >= 0 && q.begin >= 0 && p.begin < q.end && q.begin < p.end;
      if (!overlap && !may_overlap(source_.may_alias, a, b)) apart.push_back(scopes[b]);
    }
    others[a] = llvm::MDNode::get(context_, apart);
  }
  for (const auto& [access, buffer] : marked_) {
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context_, {scopes[buffer]}));
    access->setMetadata(llvm::LLVMContext::MD_noalias, others[buffer]);
  }
}

}  // namespace helve::cpu
