/* SPDX-License-Identifier: Apache-2.0 */
/* Receive windows: README.md, "Fronthaul". */
#include "windows.h"

#include "frame.h"

void windows_judge(struct windows *w, const struct io_buf *message, const struct packet *packet,
		   uint64_t now)
{
	const struct fronthaul *f = w->fronthaul;
	struct fronthaul_symbol symbol;
	struct windows_plane *p;
	uint64_t air, opens;

	if (message->headers != FRAME_HEADERS ||
	    !fronthaul_symbol(f, message->data - FRAME_HEADERS, packet->intended, &symbol))
		return;
	p = &w->planes[symbol.plane];
	air = fronthaul_air(f, &symbol);
	opens = air - f->t2a[symbol.plane].most_ns;
	if (packet->sent + f->t1a[symbol.plane].least_ns > air) {
		p->sent_late++;
		return;
	}
	if (now < opens) {
		p->early++;
		return;
	}
	histogram_add(&p->after_opening, now - opens, 1);
	if (now + f->t2a[symbol.plane].least_ns > air)
		p->late++;
	else
		p->on_time++;
}

uint64_t windows_missed(const struct windows *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < FRONTHAUL_PLANES; i++)
		n += w->planes[i].early + w->planes[i].late;
	return n;
}

static void write_plane(struct json *j, const struct windows *w, enum fronthaul_plane plane)
{
	static const char *const names[] = {[FRONTHAUL_C] = "c_plane", [FRONTHAUL_U] = "u_plane"};
	const struct windows_plane *p = &w->planes[plane];
	const struct fronthaul_window *t = &w->fronthaul->t2a[plane];

	json_open(j, names[plane]);
	json_u64(j, "early", p->early);
	json_u64(j, "on_time", p->on_time);
	json_u64(j, "late", p->late);
	json_u64(j, "sent_late", p->sent_late);
	json_u64(j, "window_ns", t->most_ns - t->least_ns);
	json_histogram(j, "after_opening", &p->after_opening, true);
	json_close(j);
}

void windows_write(const struct windows *w, struct json *j)
{
	json_open(j, "windows");
	for (unsigned i = 0; i < FRONTHAUL_PLANES; i++)
		write_plane(j, w, i);
	json_close(j);
}
