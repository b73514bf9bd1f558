/* SPDX-License-Identifier: Apache-2.0 */
/* Receive windows: README.md, "Fronthaul". */
#include "windows.h"

#include "frame.h"

static bool window_of(const struct windows *w, const struct io_buf *message, uint64_t ns,
		      struct slots_window *window)
{
	const uint8_t *begin = message->data - message->headers;

	if (w->fapi)
		return message->headers == FAPI_HEADERS && fapi_window(w->fapi, begin, ns, window);
	return message->headers == FRAME_HEADERS &&
	       fronthaul_window(w->fronthaul, begin, ns, window);
}

void windows_judge(struct windows *w, const struct io_buf *message, const struct packet *packet,
		   uint64_t now)
{
	struct slots_window window;
	struct windows_kind *k;

	if (!window_of(w, message, packet->intended, &window))
		return;
	k = &w->kinds[window.kind];
	if (packet->sent > window.send_by) {
		k->sent_late++;
		return;
	}
	if (now < window.opens) {
		k->early++;
		return;
	}
	histogram_add(&k->after_opening, now - window.opens, 1);
	if (now > window.closes)
		k->late++;
	else
		k->on_time++;
}

uint64_t windows_missed(const struct windows *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SLOTS_KINDS; i++)
		n += w->kinds[i].early + w->kinds[i].late;
	return n;
}

static void write_kind(struct json *j, const char *name, const struct windows_kind *k,
		       uint64_t window_ns)
{
	json_open(j, name);
	json_u64(j, "early", k->early);
	json_u64(j, "on_time", k->on_time);
	json_u64(j, "late", k->late);
	json_u64(j, "sent_late", k->sent_late);
	json_u64(j, "window_ns", window_ns);
	json_histogram(j, "after_opening", &k->after_opening, true);
	json_close(j);
}

void windows_write(const struct windows *w, struct json *j)
{
	static const char *const planes[] = {[FRONTHAUL_C] = "c_plane", [FRONTHAUL_U] = "u_plane"},
				 *const messages[] = {
					 [FAPI_DL_TTI] = "dl_tti", [FAPI_TX_DATA] = "tx_data"};

	json_open(j, "windows");
	for (unsigned i = 0; i < SLOTS_KINDS && w->fapi; i++)
		write_kind(j, messages[i], &w->kinds[i], w->fapi->within_ns);
	for (unsigned i = 0; i < SLOTS_KINDS && w->fronthaul; i++) {
		const struct fronthaul_window *t = &w->fronthaul->t2a[i];

		write_kind(j, planes[i], &w->kinds[i], t->most_ns - t->least_ns);
	}
	json_close(j);
}
