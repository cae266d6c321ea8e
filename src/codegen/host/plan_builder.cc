#include "helve/codegen/host/kernel_source.h"
