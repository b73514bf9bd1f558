/* SPDX-License-Identifier: Apache-2.0 */
/* Copying frames: short ones without a call. */
#ifndef NET_DRAY_COPY_H
#define NET_DRAY_COPY_H

#include <rte_branch_prediction.h>
#include <rte_memcpy.h>
#include <string.h>

/* Exactly n bytes, n > 0: the peer must not get any byte beyond them. */
static __rte_always_inline void copy_exactly(void *to, const void *from, size_t n)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	if (likely(n - 32 <= 32)) { /* 32 to 64: two halves, which overlap */
		rte_mov32(t, f);
		rte_mov32(t + n - 32, f + n - 32);
	} else if (n - 16 < 16) {
		rte_mov16(t, f);
		rte_mov16(t + n - 16, f + n - 16);
	} else {
		memcpy(to, from, n);
	}
}

/* At least n bytes, if both buffers have 64; bytes beyond the frame may be overwritten. */
static __rte_always_inline void copy_roughly(void *to, const void *from, size_t n, size_t room)
{
	if (likely(n <= 64 && room >= 64))
		rte_mov64(to, from);
	else
		memcpy(to, from, n);
}

#endif
