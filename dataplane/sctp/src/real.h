/* SPDX-License-Identifier: Apache-2.0 */
/* libc's functions behind those that this library replaces. */
#ifndef DRAY_SCTP_REAL_H
#define DRAY_SCTP_REAL_H

#include <dlfcn.h>
#include <stdatomic.h>

/* Other threads may look it up at the same time: they find the same. */
static inline void *real_find(_Atomic(void *) *found, const char *name)
{
	void *function = atomic_load_explicit(found, memory_order_relaxed);

	if (!function) {
		function = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(found, function, memory_order_relaxed);
	}
	return function;
}

#define REAL(name)                                                                                 \
	({                                                                                         \
		static _Atomic(void *) found_##name;                                               \
		(__typeof__(&name))(uintptr_t)real_find(&found_##name, #name);                     \
	})

#endif
