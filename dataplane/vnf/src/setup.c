/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a function. */
#include <stdio.h>

#include "options.h"
#include "sessions.h"

const char *options_check_ports(const struct options *o, unsigned ports)
{
	bool pairs = o->mode == MODE_BNG || o->mode == MODE_GTPU;
	/* --mtu without a port sets all bits. */
	uint32_t given =
		o->next_of | o->ip_of | o->peer_of | (o->mtu_of == UINT32_MAX ? 0 : o->mtu_of);

	if (ports == 0)
		return "there is no port: give EAL one --vdev for each";
	if (ports > PORTS_MAX)
		return "there are more than 16 ports";
	if (pairs && ports % 2)
		return "bng and gtpu take ports in pairs: give EAL an even number of --vdev";
	if (o->mode == MODE_LB && ports < 2)
		return "lb takes port 0 and one port more for each worker: give EAL two --vdev or "
		       "more";
	if (o->mode == MODE_SESSION && ports != 1)
		return "session takes one port: give EAL one --vdev";
	if (given >> ports || (o->has_default_route && o->default_route >= ports))
		return "an option speaks of a port that is not there; ports count from 0";
	if (o->mode == MODE_BNG && (uint64_t)ports / 2 * o->svlans * BNG_CVLANS > BNG_USERS_MAX)
		return "that is more than 1048576 users: use fewer --svlans";
	return NULL;
}

void options_port(const struct options *o, unsigned port, struct port_setup *setup)
{
	bool given = o->next_of & 1u << port;
	uint8_t next[MAC] = {2, 0, 0, 0, 0, (uint8_t)port};

	memcpy(setup->next, given ? o->next[port] : next, MAC);
	/* 198.18.0.0/15 is for measuring: RFC 2544, appendix C.2.2. */
	setup->ip = o->ip_of & 1u << port ? o->ip[port] : 0xc6120001u | port << 8;
	setup->peer = o->peer_of & 1u << port ? o->peer[port] : 0xc6120002u | port << 8;
}

static int make_bng(const struct options *o, struct function *f)
{
	f->bng = (struct bng){.svlans = o->svlans,
			      .svlan_base = o->svlan_base,
			      .cvlan_base = o->cvlan_base,
			      .label = o->label};
	if (bng_open(&f->bng, f->ports) == 0)
		return 0;
	fputs("dray-vnf: no memory for the table of users\n", stderr);
	return -1;
}

static int make_gtpu(const struct options *o, struct function *f)
{
	struct lines_error error = {"no memory for the sessions"};
	int64_t ret;

	f->gtpu = (struct gtpu){.gnb = o->gnb, .plain = o->plain};
	if (o->sessions_path)
		ret = sessions_read(&f->gtpu, o->sessions_path, &error);
	else
		ret = sessions_generate(&f->gtpu, o->tunnels, o->ue, o->teid, f->port[0].peer,
					(uint8_t)o->qfi);
	if (ret == 0)
		ret = gtpu_open(&f->gtpu);
	if (ret > 0)
		snprintf(error.text, sizeof(error.text),
			 "session %lld has a TEID or an address that another has as well",
			 (long long)ret);
	if (ret == 0)
		return 0;
	fprintf(stderr, "dray-vnf: %s\n", error.text);
	return -1;
}

static int make_lb(const struct options *o, struct function *f)
{
	if (lb_open(&f->lb, o->announced, o->silence_ns) == 0)
		return 0;
	fputs("dray-vnf: no memory for the list of workers\n", stderr);
	return -1;
}

static int make_keep(const struct options *o, struct function *f)
{
	f->keep = keep_open(&o->keep);
	if (f->keep)
		return 0;
	fputs("dray-vnf: no memory for the table of sessions: take a smaller --track\n", stderr);
	return -1;
}

int options_function(const struct options *o, struct function *f)
{
	f->mode = o->mode;
	if (o->mode == MODE_BNG)
		return make_bng(o, f);
	if (o->mode == MODE_LB)
		return make_lb(o, f);
	if (o->mode == MODE_SESSION)
		return make_keep(o, f);
	return o->mode == MODE_GTPU ? make_gtpu(o, f) : 0;
}
