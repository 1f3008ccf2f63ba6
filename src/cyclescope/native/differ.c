#include "worker.h"
void differ_one(const struct differ *r,const struct kernel *k,const struct state *s,struct differ_result *o){(void)r;(void)k;(void)s;(void)o;}
