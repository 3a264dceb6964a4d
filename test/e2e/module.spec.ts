import { Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { RateLimiterService, RateLimitModule } from 'nestjs-distlimit';

const policies = { api: { limit: 7, window: '1m' } };

describe('RateLimitModule', () => {
  it('is refused where an application imports it twice with different options', async () => {
    @Module({ imports: [RateLimitModule.forRoot({ policies: { other: { limit: 1, window: '1m' } } })] })
    class Feature {}
    const starting = Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ policies }), Feature],
    }).compile();
    await expect(starting).rejects.toMatchObject({ code: 'RL_DUPLICATE_MODULE', received: '2' });
  });

  it('may be imported by several modules where it is one and the same', async () => {
    const limits = RateLimitModule.forRoot({ policies });
    @Module({ imports: [limits] })
    class Feature {}
    const testing = await Test.createTestingModule({ imports: [limits, Feature] }).compile();
    expect(testing.get(RateLimiterService).policies()).toMatchObject([{ name: 'api' }]);
    await testing.close();
  });

  it('may be in several applications of one process', async () => {
    const start = () =>
      Test.createTestingModule({ imports: [RateLimitModule.forRoot({ policies })] }).compile();
    const [one, two] = [await start(), await start()];
    expect(one.get(RateLimiterService)).not.toBe(two.get(RateLimiterService));
    await one.close();
    await two.close();
  });
});
