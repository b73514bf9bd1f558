/* SPDX-License-Identifier: Apache-2.0 */
/* The device arguments: --vdev net_dray0,port=NAME,... */
#include <errno.h>
#include <rte_kvargs.h>
#include <stdlib.h>

#include "driver.h"

#define DEFAULT_COPY_MAX 128 /* lending longer frames is cheaper: bench/cost.c */
#define DEFAULT_HOLD 1024
#define HOLD_MAX 65536

static int text(const char *key, const char *value, char *to, size_t size)
{
	if (!value || !*value || strlen(value) >= size) {
		DRAY_LOG(ERR, "%s= takes 1 to %zu characters\n", key, size - 1);
		return -EINVAL;
	}
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

static int number(const char *key, const char *value, uint32_t most, uint32_t *to)
{
	char *end = NULL;
	unsigned long n;

	errno = 0;
	n = value && *value >= '0' && *value <= '9' ? strtoul(value, &end, 10) : 0;
	if (!end || *end || errno || n > most) {
		DRAY_LOG(ERR, "%s= takes a number from 0 to %u\n", key, most);
		return -EINVAL;
	}
	*to = (uint32_t)n;
	return 0;
}

static int take_port(const char *key, const char *value, void *opaque)
{
	struct dray_arguments *a = opaque;

	return text(key, value, a->port, sizeof(a->port));
}

static int take_directory(const char *key, const char *value, void *opaque)
{
	struct dray_arguments *a = opaque;

	return text(key, value, a->directory, sizeof(a->directory));
}

static int take_reception(const char *key, const char *value, void *opaque)
{
	struct dray_arguments *a = opaque;

	if (value && !strcmp(value, "copy")) {
		a->rx_copy = UINT32_MAX;
		return 0;
	}
	if (value && !strcmp(value, "zero-copy"))
		return 0;
	DRAY_LOG(ERR, "%s= takes zero-copy or copy\n", key);
	return -EINVAL;
}

static int take_copy_max(const char *key, const char *value, void *opaque)
{
	struct dray_arguments *a = opaque;
	uint32_t bytes;
	int ret = number(key, value, UINT16_MAX, &bytes);

	if (ret == 0 && a->rx_copy != UINT32_MAX)
		a->rx_copy = bytes;
	return ret;
}

static int take_hold(const char *key, const char *value, void *opaque)
{
	struct dray_arguments *a = opaque;

	return number(key, value, HOLD_MAX, &a->rx_hold);
}

static const struct {
	const char *key;
	arg_handler_t take;
} takers[] = {{"port", take_port},
	      {"dir", take_directory},
	      {"rx", take_reception},
	      {"rx-copy-max", take_copy_max},
	      {"rx-hold", take_hold}};

int dray_arguments_read(const char *from, struct dray_arguments *a)
{
	static const char *const keys[] = {"port", "dir", "rx", "rx-copy-max", "rx-hold", NULL};
	struct rte_kvargs *kvargs = rte_kvargs_parse(from, keys);
	int ret = 0;

	*a = (struct dray_arguments){.rx_copy = DEFAULT_COPY_MAX, .rx_hold = DEFAULT_HOLD};
	if (!kvargs) {
		DRAY_LOG(ERR,
			 "'%s' is not "
			 "port=NAME[,dir=PATH][,rx=zero-copy|copy][,rx-copy-max=BYTES][,rx-hold="
			 "FRAMES]\n",
			 from);
		return -EINVAL;
	}
	for (unsigned int i = 0; i < RTE_DIM(takers); i++) {
		if (rte_kvargs_count(kvargs, takers[i].key) > 1) {
			DRAY_LOG(ERR, "%s= is given more than once\n", takers[i].key);
			ret = -EINVAL;
		}
		if (rte_kvargs_process(kvargs, takers[i].key, takers[i].take, a) < 0)
			ret = -EINVAL;
	}
	rte_kvargs_free(kvargs);
	if (ret == 0 && !a->port[0]) {
		DRAY_LOG(ERR, "port= is missing: the name of the port, as in the chain file\n");
		ret = -EINVAL;
	}
	return ret;
}
