/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a fronthaul's messages arrive in their O-RAN receive windows. */
#ifndef GEN_WINDOWS_H
#define GEN_WINDOWS_H

#include "fronthaul.h"
#include "histogram.h"
#include "json.h"
#include "packet.h"

struct windows {
	const struct fronthaul *fronthaul; /* NULL: nothing is judged */
	struct windows_plane {
		uint64_t early, on_time, late;
		uint64_t sent_late;		/* after their transmission window: not judged */
		struct histogram after_opening; /* ns, of those on time and late */
	} planes[FRONTHAUL_PLANES];
};

/* Judge a message that was received at `now`. */
void windows_judge(struct windows *windows, const struct io_buf *message,
		   const struct packet *packet, uint64_t now);

/* Messages that were early or late, of those judged. */
uint64_t windows_missed(const struct windows *windows);

void windows_write(const struct windows *windows, struct json *j);

#endif
