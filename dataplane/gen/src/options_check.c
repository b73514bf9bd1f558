/* SPDX-License-Identifier: Apache-2.0 */
/* Conflicts between options, and defaults that depend on others. */
#include "options_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "packet.h"

int options_wrong(const char *format, ...)
{
	va_list arguments;

	fputs("draygen: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs("; see draygen --help\n", stderr);
	return -1;
}

static int read_to(const char *option, const char *text, union address *to)
{
	const char *wrong_with_it = address_read(text, to);

	if (wrong_with_it)
		return options_wrong("%s: %s %s", option, text, wrong_with_it);
	if (address_port(to) == 0)
		return options_wrong("%s: %s is nobody's port", option, text);
	return 0;
}

static bool is_kind(const char *port, const char *kind)
{
	return strncmp(port, kind, strlen(kind)) == 0;
}

static bool is_framed(const char *port)
{
	return is_kind(port, "packet:") || is_kind(port, "dray:") || is_kind(port, "dpdk:");
}

static int check_to(struct options *o)
{
	if (!o->to_text)
		return 0;
	if (read_to("--to", o->to_text, &o->to) < 0)
		return -1;
	if (o->from_given && address_is6(&o->from) != address_is6(&o->to))
		return options_wrong("--from and --to are not of one family");
	o->headers = frame_headers(address_is6(&o->to));
	return 0;
}

static int read_encap(const char *option, const char *text, const struct options *o,
		      struct encap *encap)
{
	const char *wrong_with_it = text ? encap_read(text, encap) : NULL;

	if (!wrong_with_it)
		wrong_with_it = encap_check_flows(encap, o->flows);
	return wrong_with_it ? options_wrong("%s: %s %s", option, text, wrong_with_it) : 0;
}

/* Returning packets have the users' addresses if the sent ones do not. */
static enum encap_spread other_spread(enum encap_spread spread)
{
	if (spread == ENCAP_ONE_USER)
		return ENCAP_ONE_USER;
	return spread == ENCAP_SPREAD_FROM ? ENCAP_SPREAD_TO : ENCAP_SPREAD_FROM;
}

/* After the addresses. */
static int check_encap(struct options *o)
{
	bool udp = is_kind(o->port, "udp:") || (o->to_port && is_kind(o->to_port, "udp:"));

	if (o->back_encap_text && !o->both)
		return options_wrong("--back-encap needs --both");
	if (!o->encap_text && !o->spread_text && !o->back_encap_text)
		return 0;
	if (udp)
		return options_wrong("--encap, --back-encap and --spread are for ports of frames: "
				     "the kernel makes those of a udp port");
	if (o->headers == FRAME_HEADERS6)
		return options_wrong("--encap, --back-encap and --spread take IPv4");
	if (read_encap("--encap", o->encap_text, o, &o->encap) < 0)
		return -1;
	o->back_encap.spread = other_spread(o->encap.spread);
	if (read_encap("--back-encap", o->back_encap_text, o, &o->back_encap) < 0)
		return -1;
	o->headers = encap_headers(&o->encap);
	return 0;
}

static int read_fronthaul(struct options *o)
{
	const struct fronthaul_window *up = &o->fronthaul.t1a[FRONTHAUL_U];
	const char *wrong;

	if (!is_framed(o->port) || (o->to_port && !is_framed(o->to_port)))
		return options_wrong("--fronthaul is for packet, dray and dpdk ports");
	wrong = fronthaul_read(o->fronthaul_text, &o->fronthaul);
	if (wrong)
		return options_wrong("--fronthaul: %s %s", o->fronthaul_text, wrong);
	o->rate_text = "fronthaul";
	if (!o->catch_up_given)
		o->catch_up_ns = up->most_ns - up->least_ns;
	return 0;
}

/* A null port sends and returns messages, but has no slots to make them in. */
static bool takes_fapi(const struct options *o, const char *port)
{
	return is_kind(port, "dray:") || (strcmp(port, "null") == 0 && o->role != ROLE_SINK);
}

static int read_fapi(struct options *o)
{
	const char *wrong;

	if (!takes_fapi(o, o->port) || (o->to_port && !takes_fapi(o, o->to_port)))
		return options_wrong("--fapi is for dray ports, whose links have message buffers, "
				     "and for send and loop over null");
	if (o->to_mac_given || o->back_to_mac_given || o->reflect)
		return options_wrong("--fapi takes no --to-mac, --back-to-mac and --reflect: its "
				     "messages have no addresses");
	wrong = fapi_read(o->fapi_text, &o->fapi);
	if (wrong)
		return options_wrong("--fapi: %s %s", o->fapi_text, wrong);
	o->headers = FAPI_HEADERS;
	o->rate_text = "fapi";
	if (!o->catch_up_given)
		o->catch_up_ns = o->fapi.within_ns;
	return 0;
}

/* Slots decide what is sent when; nothing is sent when its time is over. */
static int check_slots(struct options *o, const struct options *usual)
{
	const char *option = o->fapi_text ? "--fapi" : "--fronthaul";

	if (!o->fronthaul_text && !o->fapi_text)
		return 0;
	if (o->fronthaul_text && o->fapi_text)
		return options_wrong("--fronthaul and --fapi are different loads: leave one out");
	if (o->to_text || o->back_to_text || o->from_given || o->encap_text || o->spread_text ||
	    o->back_encap_text || o->size || o->imix || o->rate_text != usual->rate_text ||
	    o->layer_text != usual->layer_text || o->burst != usual->burst ||
	    o->flows != usual->flows || o->granularity_given || o->dscp || o->bulk_text)
		return options_wrong(
			"%s takes no --to, --from, --encap, --spread, --size, --rate, --layer, "
			"--burst, --flows, --granularity, --dscp and --bulk: it decides what is "
			"sent",
			option);
	if ((o->fapi_text ? read_fapi(o) : read_fronthaul(o)) < 0)
		return -1;
	o->size = o->role == ROLE_SINK ? 0 : slots_size_max(options_slots(o));
	o->rate = (struct rate){.per_second = slots_rate(options_slots(o))};
	return 0;
}

/* Over IPv6, and with an encapsulation, the smallest frame is larger. */
static int check_size(struct options *o)
{
	bool given = o->size || o->imix;
	uint32_t back = encap_headers(&o->back_encap),
		 most = o->both && back > o->headers ? back : o->headers,
		 smallest = most + PACKET_SHORT;

	if (o->role == ROLE_SINK && given && strcmp(o->port, "null") != 0)
		return options_wrong("--size: a sink takes what comes; only a null port makes it");
	if (o->size == 0)
		o->size = most + PACKET_HEADER;
	if (o->size < smallest)
		return options_wrong("--size: with these headers a frame has at least %u bytes",
				     smallest);
	if (strcmp(o->layer_text, "payload") == 0)
		o->layer_bytes = -(int32_t)o->headers;
	return 0;
}

/* After the headers and the size of the first stream. */
static int check_bulk(struct options *o)
{
	const char *wrong;

	if (!o->bulk_text)
		return 0;
	wrong = bulk_read(o->bulk_text, &o->bulk);
	if (wrong)
		return options_wrong("--bulk: %s %s", o->bulk_text, wrong);
	if (o->rate.per_second == 0)
		return options_wrong("--bulk needs a --rate other than max: it is sent while the "
				     "first stream has nothing due");
	if (o->encap_text || o->spread_text)
		return options_wrong("--bulk takes no --encap and --spread");
	if (o->stream == UINT32_MAX)
		return options_wrong("--bulk has the number after --stream: give a lower one");
	if (o->flows + o->bulk.flows > PACKET_FLOWS)
		return options_wrong("--bulk: at most %d flows with those of --flows",
				     PACKET_FLOWS);
	if (o->bulk.size < o->headers + PACKET_HEADER)
		return options_wrong("--bulk: with these headers a frame has at least %u bytes",
				     o->headers + PACKET_HEADER);
	return 0;
}

/* Without --back-to, the other direction goes to the address that the udp port is bound to. */
static int check_back(struct options *o)
{
	if (!o->both)
		return o->back_to_text || o->back_to_mac_given
			       ? options_wrong("--back-to and --back-to-mac need --both")
			       : 0;
	if (!o->back_to_text && is_kind(o->port, "udp:"))
		o->back_to_text = o->port + strlen("udp:");
	if (o->back_to_text && read_to("--back-to", o->back_to_text, &o->back_to) < 0)
		return -1;
	if ((o->back_to_text && address_is6(&o->back_to)) != (o->to_text && address_is6(&o->to)))
		return options_wrong("both ways need one family: give --to and --back-to");
	if (is_kind(o->port, "udp:") && o->flows > 1)
		return options_wrong("--both over udp has one flow");
	return 0;
}

static int check_loop(struct options *o)
{
	if (!o->to_port)
		return options_wrong("loop needs --to-port");
	if ((strcmp(o->port, "null") == 0) != (strcmp(o->to_port, "null") == 0))
		return options_wrong("a null port is the other end of null only");
	if (o->both && strcmp(o->port, o->to_port) == 0)
		return options_wrong("--both needs two ports");
	if (!o->to_text && is_kind(o->to_port, "udp:"))
		o->to_text = o->to_port + strlen("udp:");
	return 0;
}

static int check_ports(struct options *o)
{
	if (!o->port)
		return options_wrong("%s needs --port", options_role(o->role));
	if (o->spin_auto && !is_kind(o->port, "dray:"))
		return options_wrong("--spin auto is for dray ports: give a time");
	if (o->role == ROLE_LOOP)
		return check_loop(o);
	if (o->role != ROLE_SINK && !o->to_text && !o->fronthaul_text &&
	    (is_kind(o->port, "udp:") || is_kind(o->port, "packet:")))
		return options_wrong("%s over %s needs --to IP:PORT", options_role(o->role),
				     o->port);
	return 0;
}

/* An option that the port would ignore is an error, here and below. */
static int check_udp(const struct options *o, const struct options *usual)
{
	bool udp = is_kind(o->port, "udp:") || (o->to_port && is_kind(o->to_port, "udp:"));

	if (!udp && o->batch != usual->batch)
		return options_wrong("--batch is for udp ports");
	return 0;
}

static int check_dpdk(struct options *o, const struct options *usual)
{
	bool dpdk = is_kind(o->port, "dpdk:") || (o->to_port && is_kind(o->to_port, "dpdk:"));

	if (!dpdk && (o->eal || o->from_given || o->queues != usual->queues ||
		      o->descriptors != usual->descriptors || o->mtu != usual->mtu))
		return options_wrong(
			"--eal, --queues, --descriptors, --mtu and --from are for dpdk ports");
	if (dpdk && !o->eal)
		o->eal = getenv("DRAY_EAL"); /* of a program that starts DPDK applications */
	if (dpdk && !o->eal)
		return options_wrong("a dpdk port needs --eal, or $DRAY_EAL: at least --vdev");
	return 0;
}

int options_check(struct options *o, const struct options *usual)
{
	if (check_ports(o) < 0 || check_udp(o, usual) < 0 || check_dpdk(o, usual) < 0)
		return -1;
	if (check_to(o) < 0 || check_encap(o) < 0 || check_slots(o, usual) < 0 ||
	    check_size(o) < 0 || check_bulk(o) < 0)
		return -1;
	if (o->role == ROLE_LOOP && check_back(o) < 0)
		return -1;
	if (o->role == ROLE_SINK && o->reflect && strcmp(o->port, "null") == 0)
		return options_wrong("a null port has nobody to send back to");
	if (o->closed) {
		if (o->burst > 1)
			return options_wrong(
				"--closed sends one packet at a time: leave out --burst");
		o->granularity_ns = 0;
	}
	if (o->busy && !o->granularity_given)
		o->granularity_ns = 0;
	return 0;
}
