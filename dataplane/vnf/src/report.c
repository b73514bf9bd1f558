/* SPDX-License-Identifier: Apache-2.0 */
/* Writing results. */
#include "report.h"

#include <inttypes.h>

#define FORMAT_VERSION 1

static void begin(const struct report *r, const char *event)
{
	fprintf(r->out, "{\"dray_vnf\":%d,\"event\":\"%s\",\"mode\":\"%s\"", FORMAT_VERSION, event,
		r->mode);
}

static void end(const struct report *r)
{
	fputs("}\n", r->out);
	fflush(r->out);
}

/* Device names come from the command line and may contain any character. */
static void string(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\":\"", name);
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (c < 0x20 || c == '"' || c == '\\')
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

void report_ready(const struct report *r)
{
	begin(r, "ready");
	fprintf(r->out, ",\"lcores\":%u,\"stages\":%s,\"ports\":[", r->lcores,
		r->stages ? "true" : "false");
	for (unsigned i = 0; i < r->ports; i++) {
		const uint8_t *mac = r->setup[i].mac;

		fputs(i ? ",{" : "{", r->out);
		string(r->out, "name", r->port[i].name);
		fprintf(r->out, ",\"mac\":\"%02x:%02x:%02x:%02x:%02x:%02x\",\"mtu\":%u}", mac[0],
			mac[1], mac[2], mac[3], mac[4], mac[5], r->setup[i].mtu);
	}
	fputc(']', r->out);
	end(r);
}

static void named(FILE *out, const char **comma, const char *name, uint64_t value)
{
	fprintf(out, "%s\"%s\":%" PRIu64, *comma, name, value);
	*comma = ",";
}

/* Which workers are up, and how many packets each refused. */
static void workers(const struct report *r, const struct totals *t)
{
	uint32_t up = atomic_load_explicit(&r->lb->up, memory_order_relaxed),
		 leaving = atomic_load_explicit(&r->lb->news->leaving, memory_order_relaxed);

	fputs(",\"workers\":[", r->out);
	for (unsigned i = 1; i < r->ports; i++)
		fprintf(r->out,
			"%s{\"port\":%u,\"up\":%s,\"leaving\":%s,\"not_taken\":%" PRIu64 "}",
			i > 1 ? "," : "", i, up >> i & 1 ? "true" : "false",
			leaving >> i & 1 ? "true" : "false", t->not_taken[i]);
	fprintf(r->out, "],\"rebalances\":%" PRIu64,
		atomic_load_explicit(&r->lb->rebalances, memory_order_relaxed));
}

static void value(const struct report *r, const char **comma, const char *name,
		  const _Atomic uint64_t *counter)
{
	named(r->out, comma, name, atomic_load_explicit(counter, memory_order_relaxed));
}

/* Packets of sessions, less those that Redis has, are what would be lost now. */
static void sessions(const struct report *r)
{
	const struct track_counts *t = &r->keep->track.counts;
	const struct store_counts *s = &r->keep->store.counts;
	const char *comma = "";

	fputs(",\"sessions\":{", r->out);
	value(r, &comma, "live", &t->live);
	value(r, &comma, "created", &t->created);
	value(r, &comma, "resumed", &t->resumed);
	value(r, &comma, "expired", &t->expired);
	value(r, &comma, "waiting", &t->waiting);
	value(r, &comma, "packets", &t->packets);
	value(r, &comma, "untracked_packets", &t->untracked);
	fputs("},\"redis\":{", r->out);
	comma = "";
	fprintf(r->out, "\"worker\":\"worker:%016" PRIx64 "\",", r->keep->store.writer);
	value(r, &comma, "connected", &s->connected);
	value(r, &comma, "connects", &s->connects);
	value(r, &comma, "errors", &s->errors);
	value(r, &comma, "packets", &s->packets);
	value(r, &comma, "refused", &s->refused);
	value(r, &comma, "regressed", &s->regressed);
	value(r, &comma, "lag_max_ns", &s->lag_ns);
	fputc('}', r->out);
}

void report_counts(const struct report *r, const char *event, double seconds,
		   const struct totals *t)
{
	const char *comma = "";

	begin(r, event);
	fprintf(r->out,
		",\"seconds\":%.6f,\"received\":%" PRIu64 ",\"sent\":%" PRIu64
		",\"dropped\":%" PRIu64 ",\"drops\":{",
		seconds, t->all_received, t->all_sent, t->all_dropped);
	for (unsigned i = PASS + 1; i < REASON_COUNT; i++)
		if (t->dropped[i])
			named(r->out, &comma, reason_name((enum reason)i), t->dropped[i]);
	fprintf(r->out, "},\"arp_replies\":%" PRIu64 ",\"echo_replies\":%" PRIu64 ",\"ports\":[",
		t->replied[REPLY_ARP], t->replied[REPLY_ECHO]);
	for (unsigned i = 0; i < r->ports; i++)
		fprintf(r->out, "%s{\"received\":%" PRIu64 ",\"sent\":%" PRIu64 "}", i ? "," : "",
			t->received[i], t->sent[i]);
	fputc(']', r->out);
	if (r->lb)
		workers(r, t);
	if (r->keep)
		sessions(r);
	fputs(",\"cycles_per_packet\":", r->out);
	if (t->all_received)
		fprintf(r->out, "%.1f", (double)t->cycles / (double)t->all_received);
	else
		fputs("null", r->out);
	end(r);
}
